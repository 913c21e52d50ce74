/* Low-rank adapters and narrow base weights against published counts and memory, and against what can be counted. */
#include "simulate.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

static const char *const base =
    "model: llama-2-7b\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 1}\n"
    "stack: {profile: pytorch-2, dropout: false}\n"
    "training: {global_batch: 2, micro_batch: 2, sequence_length: 512, precision: bf16,\n"
    "           recompute: full, adapters: {lora: {rank: 8}}}\n";

#define LORA "training.adapters.lora"

static void published_counts_of_trained_parameters(void **state) {
    (void)state;
    static const struct {
        const char *settings;
        double trained;
    } all[] = {
        /* huggingface/peft, print_trainable_parameters of Llama 7B, r = 8: 4,194,304 of 6,742,609,920 */
        {"", 4194304},
        /* Llama 3 8B, r = 16: query and value; every linear layer (unslothai/unsloth prints both) */
        {"model=llama-3-8b " LORA ".rank=16", 6815744},
        {"model=llama-3-8b " LORA ".rank=16 " LORA ".targets=all-linear", 41943040},
        /* the same whether products are separate or joined */
        {"model=llama-3-8b stack.separate_qkv=true " LORA ".rank=16 " LORA ".targets=all-linear", 41943040},
        /* Hu et al. 2021, arXiv 2106.09685, table 4: GPT-3 with 4.7M */
        {"model=gpt3-175b " LORA ".rank=1", 4718592},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        dts_result *r = simulate_text(base, all[i].settings);
        assert_close(r->trainable_parameters, all[i].trained, 0, 0);
        dts_result_free(r);
    }
    dts_result *r = simulate_text(base, "");
    assert_close(r->stages[0].parameters, 6742609920.0, 0, 0);
    dts_result_free(r);
}

/* What lives the whole iteration: 2 B a frozen weight; 2 B an adapter's element, its gradient and each moment. */
static void memory_is_counted_in_full(void **state) {
    (void)state;
    const double frozen = 6738415616.0, trained = 4194304;
    dts_result *r = simulate_text(base, "");
    assert_close(r->memory_gib.parameters * GIB, 2 * (frozen + trained), 1e-9, 0);
    assert_close(r->memory_gib.gradients * GIB, 2 * trained, 1e-9, 0);
    assert_close(r->memory_gib.optimizer * GIB, 4 * trained, 1e-9, 0);
    dts_result_free(r);
    r = simulate_text(base, "training.precision=amp-bf16"); /* adapters in fp32 beside the same base */
    assert_close(r->memory_gib.parameters * GIB, 2 * frozen + 4 * trained, 1e-9, 0);
    assert_close(r->memory_gib.optimizer * GIB, 8 * trained, 1e-9, 0);
    dts_result_free(r);
    /* QLoRA, arXiv 2305.14314, section 3: double quantisation takes the constants from 0.5 to 0.127 bits */
    const double ends = 2 * 32000.0 * 4096, norms = (2 * 32 + 1) * 4096.0, products = frozen - ends - norms;
    const struct {
        const char *settings;
        double element_B;
    } narrow[] = {{LORA ".base=nf4", (4 + 8.0 / 64 + 32.0 / (64 * 256)) / 8},
                  {LORA ".base=nf4 " LORA ".double_quantisation=false", (4 + 32.0 / 64) / 8},
                  {LORA ".base=gptq", (4 + (16.0 + 4) / 128) / 8}, /* arXiv 2210.17323, groups of 128 */
                  {LORA ".base=int8", 1},
                  {LORA ".base=fp8", 1}};
    for (size_t i = 0; i < sizeof narrow / sizeof narrow[0]; i++) {
        r = simulate_text(base, narrow[i].settings);
        assert_close(r->memory_gib.parameters * GIB, products * narrow[i].element_B + 2 * (ends + norms + trained),
                     1e-8, 0);
        dts_result_free(r);
    }
}

/* A frozen weight has no weight gradient: of three products of a layer two are left, and the backward of the first
 * kernel of all, the embedding's, is gone. Narrow weights cost time, not FLOPs. */
static void frozen_weights_have_no_weight_gradient(void **state) {
    (void)state;
    /* the peak is in backward, whatever is stepped */
    dts_result *all = simulate_text(base, "stack.optimizer.style=fused training.adapters=none training.recompute=none");
    dts_result *lora = simulate_text(base, "training.recompute=none " LORA ".dropout=false");
    dts_result *nf4 = simulate_text(base, "training.recompute=none " LORA ".dropout=false " LORA ".base=nf4");
    const double flops = all->hfu * all->iteration_time_s, left = lora->hfu * lora->iteration_time_s;
    assert_close(left / flops, 2.0 / 3, 0.03, 0); /* and attention, whose gradients are all of activations */
    assert_true(lora->iteration_time_s < 0.7 * all->iteration_time_s);
    assert_close(nf4->hfu * nf4->iteration_time_s, left, 1e-9, 0);
    /* every layer's weights are written out twice: 2 + 0.516 B an element over 80 to 90 % of 2,039 GB/s */
    const double written_s = (2 + 0.516) * 2 * 6476005376.0 / 2039e9;
    assert_true(nf4->iteration_time_s - lora->iteration_time_s > written_s);
    assert_true(nf4->iteration_time_s - lora->iteration_time_s < 1.4 * written_s);
    /* without dropout an adapter keeps x, which all products of it share; other products keep nothing */
    assert_true(lora->memory_gib.activations < 0.85 * all->memory_gib.activations);
    dts_result_free(all);
    dts_result_free(lora);
    dts_result_free(nf4);
}

/* GPTQ's weights are unpacked once forward, 16.5 B an element, and autograd keeps what came out; recomputation lets go
 * of all but a layer's. */
static void unpacked_weights_are_kept(void **state) {
    (void)state;
    const double layers = 6476005376.0; /* weights of the layers' products */
    dts_result *lora = simulate_text(base, "training.recompute=none " LORA ".dropout=false");
    dts_result *gptq = simulate_text(base, "training.recompute=none " LORA ".dropout=false " LORA ".base=gptq");
    assert_close((gptq->memory_gib.activations - lora->memory_gib.activations) * GIB, 2 * layers, 0.03, 0);
    const double unpacked_s = (0.5 + 2.5 / 128 + 14 + 2) * layers / 2039e9;
    assert_true(gptq->iteration_time_s - lora->iteration_time_s > unpacked_s);
    assert_true(gptq->iteration_time_s - lora->iteration_time_s < 1.6 * unpacked_s);
    dts_result *again = simulate_text(base, "training.recompute=full " LORA ".dropout=false " LORA ".base=gptq");
    assert_true(again->peak_allocated_gib * GIB < gptq->peak_allocated_gib * GIB - 1.8 * layers);
    dts_result_free(lora);
    dts_result_free(gptq);
    dts_result_free(again);
}

/* torchtune, docs/source/tutorials/qlora_finetune.rst: Llama 2 7B on one GPU, batch 2 of Alpaca's short samples,
 * recomputation: LoRA holds 13.96 GB after loading and reserves 15.57 GB, QLoRA 9.29 GB (its loading peaks at 9.13). */
static void memory_of_published_runs(void **state) {
    (void)state;
    const char *all_linear = LORA ".targets=all-linear " LORA ".dropout=true training.optimizer=adamw";
    dts_result *r = simulate_text(base, all_linear);
    print_message("torchtune LoRA: parameters %.2f GB (13.96), reserved %.2f GB (15.57)\n",
                  r->memory_gib.parameters * GIB / 1e9, r->peak_reserved_gib * GIB / 1e9);
    assert_close(r->memory_gib.parameters * GIB / 1e9, 13.96, 0.04, 0);
    assert_close(r->peak_reserved_gib * GIB / 1e9, 15.57, 0.1, 0);
    dts_result_free(r);
    r = simulate_text(base, LORA ".targets=all-linear " LORA ".base=nf4");
    print_message("torchtune QLoRA: reserved %.2f GB (below 9.29)\n", r->peak_reserved_gib * GIB / 1e9);
    assert_true(r->peak_reserved_gib * GIB / 1e9 < 9.29);
    dts_result_free(r);
    /* QLoRA, abstract: 65B on one GPU of 48 GB, which full fine-tuning exceeds by far (over 780 GB) */
    const char *large =
        "model=llama model.layers=80 model.hidden=8192 model.heads=64 model.ffn_hidden=22016 "
        "model.vocab=32000 cluster.gpu.memory=48GB training.micro_batch=1 training.global_batch=1 ";
    char settings[LONGEST_SETTINGS];
    snprintf(settings, sizeof settings, "%s%s", large,
             LORA ".rank=64 " LORA ".targets=all-linear " LORA ".base=nf4 training.optimizer=adamw-8bit");
    r = simulate_text(base, settings);
    assert_close(r->parameters, 65.2e9, 0.01, 0);
    print_message("QLoRA 65B: %.1f GB on the GPU\n", r->peak_device_gib * GIB / 1e9);
    assert_true(r->fits);
    assert_true(r->peak_device_gib * GIB / 1e9 > 36);
    dts_result_free(r);
    snprintf(settings, sizeof settings, "%s%s", large, "training.adapters=none training.precision=amp-bf16");
    r = simulate_text(base, settings);
    assert_false(r->fits);
    assert_true(r->peak_allocated_gib * GIB > 780e9);
    dts_result_free(r);
}

static double moved_B(const dts_result *r, const char *kind) {
    const dts_communication_row *row = communication_row(r, kind, "data");
    return row == NULL ? 0 : row->bytes;
}

/* DDP and ZeRO send the adapters' gradients only; FSDP and ZeRO-3 gather the frozen weights in their stored format, a
 * pass in each direction, and keep a share. */
static void replicas_send_what_is_trained(void **state) {
    (void)state;
    const double trained = 4194304, frozen = 6738415616.0;
    const char *eight = "cluster.gpus_per_node=8 training.global_batch=16 training.recompute=none ";
    char settings[LONGEST_SETTINGS];
    static const char *const kinds[] = {"ddp", "zero1", "zero2"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        snprintf(settings, sizeof settings, "%sparallelism.data_parallel=%s", eight, kinds[i]);
        dts_result *r = simulate_text(base, settings);
        assert_close(moved_B(r, "all-reduce") + moved_B(r, "reduce-scatter"), 2 * trained, 1e-9, 0);
        assert_close(moved_B(r, "all-gather"), i == 0 ? 0 : 2 * trained, 1e-9, 0);
        dts_result_free(r);
    }
    snprintf(settings, sizeof settings, "%sparallelism.data_parallel=fsdp", eight);
    dts_result *r = simulate_text(base, settings);
    const double ends = 2 * 32000.0 * 4096 + 4096;
    assert_close(moved_B(r, "all-gather"), 2 * (2 * (frozen + trained) - ends), 1e-6, 0); /* the root unit once */
    assert_close(moved_B(r, "reduce-scatter"), 2 * trained, 1e-9, 0);
    assert_close(r->memory_gib.parameters * GIB, 2 * (frozen + trained) / 8, 1e-8, 0);
    dts_result_free(r);
    /* base and states in host memory: Answer.AI's "70B on two 24 GB GPUs" needs this */
    snprintf(settings, sizeof settings,
             "%sparallelism.data_parallel=fsdp offload.parameters=cpu offload.optimizer=cpu " LORA ".base=nf4", eight);
    r = simulate_text(base, settings);
    assert_close(r->memory_gib.parameters, 0, 0, 0);
    assert_true(r->host_peak_gib * GIB > 3.3e9);
    dts_result_free(r);
}

/* Casts of fp32 weights go when the gradient of their product's input is there: as many microbatches as one likes take
 * the same memory, and under full recomputation the casts of one layer live at once. */
static void casts_go_with_their_layer(void **state) {
    (void)state;
    const double layer_B = 2 * (4 * 4096.0 * 4096 + 3 * 4096.0 * 11008), head_B = 2 * 32000.0 * 4096;
    static const char *const recompute[] = {"full", "none"};
    static const int layers[] = {1, 32};
    for (int k = 0; k < 2; k++) {
        double activations_B[3], peaks_B[3];
        static const char *const others[] = {"training.global_batch=4 " LORA ".base=native",
                                             "training.global_batch=4 " LORA ".base=fp32",
                                             "training.global_batch=8 " LORA ".base=fp32"};
        for (int i = 0; i < 3; i++) {
            char settings[LONGEST_SETTINGS];
            snprintf(settings, sizeof settings, /* few tokens, so that weights are nearly all there is */
                     "training.sequence_length=16 training.precision=amp-bf16 training.recompute=%s %s", recompute[k],
                     others[i]);
            dts_result *r = simulate_text(base, settings);
            activations_B[i] = r->memory_gib.activations * GIB;
            peaks_B[i] = r->peak_allocated_gib * GIB;
            dts_result_free(r);
        }
        assert_close(peaks_B[2], peaks_B[1], 0, 0);
        const double casts_B = activations_B[1] - activations_B[0];
        assert_true(casts_B <= 1.01 * (layers[k] * layer_B + head_B) && casts_B >= (layers[k] - 0.5) * layer_B);
    }
}

/* Embeddings and norms in fp32 hand fp32 on, which autocast casts for products only: so are the checkpoints of the 32
 * layers, (2 · 512, 4096) each. */
static void frozen_fp32_keeps_the_stream_wide(void **state) {
    (void)state;
    double taken_B[2];
    for (int i = 0; i < 2; i++) {
        char settings[LONGEST_SETTINGS];
        snprintf(settings, sizeof settings, "training.precision=amp-bf16 model.layers=%d " LORA ".base=fp32",
                 2 + 30 * i);
        dts_result *wide = simulate_text(base, settings);
        snprintf(settings, sizeof settings, "training.precision=amp-bf16 model.layers=%d", 2 + 30 * i);
        dts_result *half = simulate_text(base, settings);
        taken_B[i] = (wide->memory_gib.activations - half->memory_gib.activations) * GIB;
        dts_result_free(wide);
        dts_result_free(half);
    }
    assert_close(taken_B[1] - taken_B[0], 30 * 2 * (2.0 * 512 * 4096), 1e-6, 0);
}

/* fp32 parameters without mixed precision are gathered as they are stored; autocast casts them for each product. */
static void autocast_gathers_what_is_stored(void **state) {
    (void)state;
    static const char *const whole =
        "model: llama-2-7b\n"
        "cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 8}\n"
        "stack: pytorch-2\n"
        "training: {global_batch: 16, micro_batch: 2, sequence_length: 512, precision: amp-bf16}\n"
        "parallelism: {data_parallel: fsdp}\n";
    static const char *const settings[] = {"", "stack.fsdp.gathers_stored=true",
                                           "stack.fsdp.gathers_stored=true stack.fsdp.mixed_precision=true"};
    double moved[3];
    for (int i = 0; i < 3; i++) {
        dts_result *r = simulate_text(whole, settings[i]);
        moved[i] = moved_B(r, "all-gather");
        dts_result_free(r);
    }
    assert_close(moved[1], 2 * moved[0], 1e-9, 0);
    assert_close(moved[2], moved[0], 1e-9, 0);
}

/* FSDP gathers adapters of fp32 as they are, beside a base in bf16: forward and backward. */
static void adapters_in_fp32_are_gathered_so(void **state) {
    (void)state;
    const double trained = 4194304;
    double moved[2];
    for (int i = 0; i < 2; i++) {
        char settings[LONGEST_SETTINGS];
        snprintf(settings, sizeof settings,
                 "cluster.gpus_per_node=8 training.global_batch=16 training.recompute=none "
                 "parallelism.data_parallel=fsdp " LORA ".fp32=%s",
                 i == 0 ? "false" : "true");
        dts_result *r = simulate_text(base, settings);
        moved[i] = moved_B(r, "all-gather");
        dts_result_free(r);
    }
    assert_close(moved[1] - moved[0], 2 * (4 - 2) * trained, 1e-6, 0);
}

/* fp32 shards of which FSDP gathers half copies: nothing is left to cast, and nothing waits for backward. */
static void mixed_precision_gathers_fp32_weights_in_half(void **state) {
    (void)state;
    const double trained = 4194304, frozen = 6738415616.0, ends = 2 * 32000.0 * 4096 + 4096;
    static const char *const others[] = {LORA ".base=native stack.fsdp.mixed_precision=true",
                                         LORA ".base=fp32 stack.fsdp.mixed_precision=true",
                                         LORA ".base=fp32 stack.fsdp.mixed_precision=false"};
    double activations[3], times_s[3];
    for (int i = 0; i < 3; i++) {
        char settings[LONGEST_SETTINGS];
        snprintf(settings, sizeof settings,
                 "cluster.gpus_per_node=8 training.global_batch=16 training.recompute=none "
                 "training.precision=amp-bf16 parallelism.data_parallel=fsdp %s",
                 others[i]);
        dts_result *r = simulate_text(base, settings);
        const double gathered_B = i == 2 ? 4 : 2, stored_B = i == 0 ? 2 : 4;
        assert_close(moved_B(r, "all-gather"), gathered_B * (2 * frozen - ends) + 2 * 2 * trained, 1e-6, 0);
        assert_close(r->memory_gib.parameters * GIB, (stored_B * frozen + 4 * trained) / 8, 1e-8, 0);
        activations[i] = r->memory_gib.activations;
        times_s[i] = r->iteration_time_s;
        dts_result_free(r);
    }
    assert_close(activations[1], activations[0], 1e-12, 0);
    assert_close(times_s[1], times_s[0], 1e-9, 0);
    assert_true(activations[2] > 1.5 * activations[1] && times_s[2] > times_s[1]);
}

/* ---- shared with other ranks ------------------------------------------------------------------------------------- */

static const char *const eight =
    "model: {profile: llama-3-8b, layers: 4}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1, gpus_per_node: 8}\n"
    "stack: {profile: pytorch-2, dropout: false}\n"
    "training: {global_batch: 8, micro_batch: 1, sequence_length: 1024, precision: bf16,\n"
    "           adapters: {lora: {rank: 16, targets: all-linear}}}\n";

static const dts_communication_row *row_of(const dts_result *r, const char *kind, const char *group) {
    const dts_communication_row *row = communication_row(r, kind, group);
    assert_non_null(row);
    return row;
}

/* Llama 3 8B trains 41,943,040 / 32 a layer (above), however they are laid out. */
static void no_layout_trains_more(void **state) {
    (void)state;
    static const char *const all[] = {"parallelism.tensor=4",
                                      "parallelism.tensor=2 parallelism.sequence=true parallelism.pipeline=2",
                                      "parallelism.pipeline=4 parallelism.schedule=zb-h1",
                                      "parallelism.pipeline=2 parallelism.schedule=dualpipe training.global_batch=32",
                                      "stack.attention=flash parallelism.context=2",
                                      "stack.separate_qkv=true parallelism.tensor=2",
                                      "parallelism.tensor=2 parallelism.data_parallel=fsdp",
                                      "parallelism.pipeline=2 parallelism.data_parallel=zero3"};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        dts_result *r = simulate_text(eight, all[i]);
        assert_close(r->trainable_parameters, 41943040.0 / 32 * 4, 0, 0);
        dts_result_free(r);
    }
}

/* Between the factors the tensor (tokens, rank) is exchanged; behind those of a row-split product (tokens, hidden). Of
 * the seven adapters of a layer five are column-split, in two products. */
static void tensor_parallel_ranks_exchange_the_narrow_path(void **state) {
    (void)state;
    const double narrow_B = 1024.0 * 16 * 2, wide_B = 1024.0 * 4096 * 2, layers = 4, microbatches = 2;
    const double each = layers * microbatches;
    static const char *const settings[] = {"parallelism.tensor=2 parallelism.data=4",
                                           "parallelism.tensor=2 parallelism.data=4 parallelism.sequence=true"};
    for (int sequence = 0; sequence < 2; sequence++) {
        char plain[LONGEST_SETTINGS];
        snprintf(plain, sizeof plain, "%s training.adapters=none", settings[sequence]);
        dts_result *lora = simulate_text(eight, settings[sequence]), *none = simulate_text(eight, plain);
        const double reduced =
            row_of(lora, "all-reduce", "tensor")->bytes - row_of(none, "all-reduce", "tensor")->bytes;
        const dts_communication_row *before = communication_row(none, "all-gather", "tensor");
        const double gathered =
            row_of(lora, "all-gather", "tensor")->bytes - (before == NULL ? 0 : before->bytes) * (sequence == 0);
        if (sequence == 0) { /* forward 2 row-split, backward all 7; and the input gradients of both products */
            assert_close(reduced, each * (9 * narrow_B + 2 * wide_B), 1e-9, 0);
            assert_close(gathered, each * (5 * narrow_B + 2 * wide_B), 1e-9, 0);
        } else { /* frozen products need not gather their input again: two less; the gradients of outputs twice more;
                  * and none of a microbatch's goes to the frozen embedding */
            assert_close(reduced, each * 9 * narrow_B, 1e-9, 0);
            assert_close(gathered - before->bytes, each * (5 * narrow_B + (2 + 2 - 2) * wide_B) - microbatches * wide_B,
                         1e-9, 0);
            assert_close(row_of(lora, "reduce-scatter", "tensor")->bytes,
                         row_of(none, "reduce-scatter", "tensor")->bytes, 1e-9, 0);
        }
        /* replicas reduce half of the adapters */
        assert_close(row_of(lora, "all-reduce", "data")->bytes, 2 * 41943040.0 / 32 * 4 / 2, 1e-9, 0);
        dts_result_free(lora);
        dts_result_free(none);
    }
}

/* Frozen embeddings on two stages have no gradients to add up. */
static void frozen_ties_are_not_reduced(void **state) {
    (void)state;
    const char *settings = "model.tied_embeddings=true parallelism.pipeline=4 parallelism.partition=uniform";
    dts_result *r = simulate_text(eight, settings);
    assert_null(communication_row(r, "send-recv", "embedding"));
    assert_close(r->stages[3].parameters - r->stages[1].parameters, 128256.0 * 4096 + 4096, 1e-9, 0);
    const double half_B = r->stages[3].memory_gib.parameters * GIB;
    dts_result_free(r);
    char wide[LONGEST_SETTINGS];
    snprintf(wide, sizeof wide, "%s " LORA ".base=fp32", settings);
    r = simulate_text(eight, wide); /* the copy of the embedding in fp32 as all frozen weights */
    const double trained_B = 2 * 41943040.0 / 32;
    assert_close(r->stages[3].memory_gib.parameters * GIB, 2 * (half_B - trained_B) + trained_B, 1e-9, 0);
    dts_result_free(r);
}

/* Mixtral: query, key, value, output and three products of each expert; PEFT's all-linear counts the router too, which
 * stays frozen here. */
static void experts_have_adapters_of_their_own(void **state) {
    (void)state;
    const double h = 4096, kv = 1024, f = 14336, r = 16, layers = 4;
    const double attention = r * (2 * (h + h) + 2 * (h + kv)), expert = 3 * r * (h + f);
    const char *mixtral = "model={profile:\tmixtral-8x7b,layers:\t4} ";
    static const struct {
        const char *settings;
        double degree;
    } all[] = {{"", 1},
               {"parallelism.expert=8", 8},
               {"parallelism.expert=4 parallelism.data_parallel=zero1", 4},
               {"parallelism.expert=2 parallelism.data_parallel=fsdp", 2}};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        char settings[LONGEST_SETTINGS];
        snprintf(settings, sizeof settings, "%s%s", mixtral, all[i].settings);
        dts_result *x = simulate_text(eight, settings);
        assert_close(x->trainable_parameters, layers * (attention + 8 * expert), 1e-12, 0);
        if (i == 1 || i == 2) {
            const char *kind = i == 1 ? "all-reduce" : "reduce-scatter";
            assert_close(row_of(x, kind, "data")->bytes, 2 * layers * attention, 1e-9, 0);
        }
        if (i == 2) { /* two ranks hold the same experts */
            assert_close(row_of(x, "reduce-scatter", "expert-data")->bytes, 2 * layers * 8 * expert / 4, 1e-9, 0);
        }
        if (i == 3) { /* and shard them, frozen ones too, among four */
            const double experts_B = 2 * layers * 8 * (3 * h * f + expert) / 2;
            assert_close(row_of(x, "all-gather", "expert-data")->bytes, 2 * experts_B, 1e-6, 0);
        }
        dts_result_free(x);
    }
    /* nf4: an eighth of the experts on each rank */
    char settings[LONGEST_SETTINGS];
    snprintf(settings, sizeof settings, "%sparallelism.expert=8", mixtral);
    dts_result *wide = simulate_text(eight, settings);
    snprintf(settings, sizeof settings, "%sparallelism.expert=8 training.adapters.lora.base=int8", mixtral);
    dts_result *narrow = simulate_text(eight, settings);
    const double products = layers * (2 * h * h + 2 * h * kv + 8 * h + 3 * h * f);
    assert_close((wide->memory_gib.parameters - narrow->memory_gib.parameters) * GIB, products, 1e-9, 0);
    dts_result_free(wide);
    dts_result_free(narrow);
}

/* Megatron-Bridge's FP8 recipes: the frozen products in 8 bits, the adapters in 16. */
static void frozen_products_in_8_bits(void **state) {
    (void)state;
    const char *h100 =
        "cluster=dgx-h100 cluster.gpus_per_node=1 stack=megatron-core stack.fp8.primary_weights=false "
        "training.recompute=none "
        "training.micro_batch=4 training.global_batch=16 training.sequence_length=4096 model.layers=8 ";
    char settings[LONGEST_SETTINGS];
    snprintf(settings, sizeof settings, "%straining.precision=fp8 stack.fp8.cached_weights=true", h100);
    dts_result *narrow = simulate_text(base, settings);
    snprintf(settings, sizeof settings, "%straining.precision=bf16", h100);
    dts_result *wide = simulate_text(base, settings);
    snprintf(settings, sizeof settings, "%straining.precision=fp8 stack.fp8.cached_weights=false", h100);
    dts_result *cast = simulate_text(base, settings);
    print_message("fp8 %.4f s, cast every time %.4f s, bf16 %.4f s\n", narrow->iteration_time_s, cast->iteration_time_s,
                  wide->iteration_time_s);
    assert_true(narrow->iteration_time_s < 0.9 * wide->iteration_time_s);
    assert_true(cast->iteration_time_s > narrow->iteration_time_s);
    /* two layouts of 8 bits beside the 16-bit weights */
    const double products = 8 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 11008);
    assert_close((narrow->memory_gib.parameters - cast->memory_gib.parameters) * GIB, 2 * products, 1e-6, 0);
    assert_close(narrow->trainable_parameters, wide->trainable_parameters, 0, 0);
    dts_result_free(narrow);
    dts_result_free(wide);
    dts_result_free(cast);
}

static void what_is_not_simulated_is_refused(void **state) {
    (void)state;
    assert_refused(base, "cluster.gpus_per_node=8 parallelism.tensor=8 " LORA ".rank=12",
                   "tensor 8 does not divide the adapters' rank 12");
    assert_refused(base, "cluster.gpus_per_node=2 parallelism.data_parallel=dp training.global_batch=4",
                   "frozen weights");
    assert_refused(base, "cluster=dgx-h100 cluster.gpus_per_node=1 training.precision=fp8 " LORA ".base=nf4",
                   "narrow base weights are written out for products in 16 bits");
    assert_refused(base, "model=deepseek-v2-lite", "latent attention");
    assert_refused(base, "training.precision=amp-bf16 " LORA ".fp32=true", "follow the precision");
}

/* The branch of a layer's adapters drops elements of its input, (2 · 512, 4096) halves with masks of a byte: forward
 * draws random numbers. */
static void dropout_draws_random_numbers(void **state) {
    (void)state;
    double times_s[2];
    for (int i = 0; i < 2; i++) {
        char settings[200];
        snprintf(settings, sizeof settings,
                 "stack.launch=0s stack.backward_launch=0s training.recompute=none "
                 "cluster.gpu.memory_kernel.dropout_factor=%d",
                 i + 1);
        dts_result *r = simulate_text(base, settings);
        times_s[i] = r->iteration_time_s;
        dts_result_free(r);
    }
    const double pass_s = 2.0 * 512 * 4096 * (2 + 2 + 1) / (2039e9 * 0.852);
    assert_close(times_s[1] - times_s[0], 32 * pass_s, 1e-6, 0);
}

/* Dropout of what adapters give, (2 · 512, 4096) for query and value, keeps a mask of a byte for each of its elements;
 * the adapters share the input that they keep, as without dropout. */
static void dropout_of_outputs_keeps_masks(void **state) {
    (void)state;
    static const char *const settings[] = {"training.recompute=none " LORA ".dropout=false",
                                           "training.recompute=none " LORA ".dropout_position=post",
                                           "training.recompute=none " LORA ".dropout_position=pre"};
    double peaks_B[3];
    for (int i = 0; i < 3; i++) {
        dts_result *r = simulate_text(base, settings[i]);
        peaks_B[i] = r->peak_allocated_gib * GIB;
        dts_result_free(r);
    }
    const double elements = 2.0 * 512 * 4096;
    assert_close(peaks_B[1] - peaks_B[0], 32 * 2 * elements, 1e-6, 0);
    assert_close(peaks_B[2] - peaks_B[0], 32 * elements, 1e-6, 0); /* one input, of which a copy is kept instead */
}

/* Adapters in fp32 beside weights in bf16: 4 B an element, a gradient and each moment. Those of query and value keep a
 * copy of their input in fp32 each, (2 · 512, 4096), instead of the one in bf16 that both share. Under autocast the
 * copies are cast back; beside weights in 4 bits there are none. */
static void adapters_in_fp32_copy_their_input(void **state) {
    (void)state;
    static const char *const settings[] = {LORA ".fp32=true", LORA ".fp32=false", "training.precision=amp-bf16",
                                           "training.precision=amp-bf16 " LORA ".base=nf4", LORA ".base=nf4"};
    const double frozen = 6738415616.0, trained = 4194304, elements = 2.0 * 512 * 4096;
    double peaks_B[5], times_s[5];
    for (int i = 0; i < 5; i++) {
        char text[200];
        snprintf(text, sizeof text,
                 "stack.launch=0s stack.backward_launch=0s training.recompute=none " LORA ".dropout=false %s",
                 settings[i]);
        dts_result *r = simulate_text(base, text);
        peaks_B[i] = r->peak_allocated_gib * GIB;
        times_s[i] = r->iteration_time_s;
        if (i == 0) {
            assert_close(r->memory_gib.parameters * GIB, 2 * frozen + 4 * trained, 1e-9, 0);
            assert_close(r->memory_gib.gradients * GIB, 4 * trained, 1e-9, 0);
            assert_close(r->memory_gib.optimizer * GIB, 8 * trained, 1e-9, 0);
        }
        dts_result_free(r);
    }
    const double stored_B = peaks_B[3] - peaks_B[4]; /* of the adapters, in fp32 instead of bf16 */
    assert_close(peaks_B[0] - peaks_B[1], 32 * (2 * 4 - 2) * elements + stored_B, 2e-3, 0);
    assert_close(peaks_B[2] - peaks_B[1], 32 * (2 * 2 - 2) * elements + stored_B, 1e-6, 0);
    const double copies_s = 32 * 2 * 2 * 2 * (2 + 4) * elements / (2039e9 * 0.852); /* there and back, in both passes */
    assert_close((times_s[2] - times_s[1]) - (times_s[3] - times_s[4]), copies_s, 1e-3, 0);
    assert_true(times_s[0] > times_s[2]);
}

/* Dropout of their input comes behind the cast: it reads and writes 4 bytes an element in both passes. */
static void dropout_before_fp32_adapters_is_in_fp32(void **state) {
    (void)state;
    const double products = 32, elements = 2.0 * 512 * 4096; /* query and value of a layer share an operator */
    double dropped_s[2];
    for (int i = 0; i < 2; i++) {
        double times_s[2];
        for (int drops = 0; drops < 2; drops++) {
            char text[LONGEST_SETTINGS];
            snprintf(text, sizeof text,
                     "stack.launch=0s stack.backward_launch=0s training.recompute=none "
                     "cluster.gpu.memory_kernel.dropout_factor=1 " LORA ".dropout=%s " LORA ".fp32=%s",
                     drops ? "true" : "false", i == 0 ? "false" : "true");
            dts_result *r = simulate_text(base, text);
            times_s[drops] = r->iteration_time_s;
            dts_result_free(r);
        }
        dropped_s[i] = times_s[1] - times_s[0];
    }
    const double widened_s = products * 2 * 2 * (4 - 2) * elements / (2039e9 * 0.852);
    assert_close(dropped_s[1] - dropped_s[0], widened_s, 0.02, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {

        cmocka_unit_test(published_counts_of_trained_parameters),
        cmocka_unit_test(memory_is_counted_in_full),
        cmocka_unit_test(frozen_weights_have_no_weight_gradient),
        cmocka_unit_test(memory_of_published_runs),
        cmocka_unit_test(unpacked_weights_are_kept),
        cmocka_unit_test(replicas_send_what_is_trained),
        cmocka_unit_test(casts_go_with_their_layer),
        cmocka_unit_test(frozen_fp32_keeps_the_stream_wide),
        cmocka_unit_test(autocast_gathers_what_is_stored),
        cmocka_unit_test(adapters_in_fp32_are_gathered_so),
        cmocka_unit_test(mixed_precision_gathers_fp32_weights_in_half),
        cmocka_unit_test(what_is_not_simulated_is_refused),
        cmocka_unit_test(no_layout_trains_more),
        cmocka_unit_test(frozen_products_in_8_bits),
        cmocka_unit_test(tensor_parallel_ranks_exchange_the_narrow_path),
        cmocka_unit_test(frozen_ties_are_not_reduced),
        cmocka_unit_test(dropout_draws_random_numbers),
        cmocka_unit_test(dropout_of_outputs_keeps_masks),
        cmocka_unit_test(adapters_in_fp32_copy_their_input),
        cmocka_unit_test(dropout_before_fp32_adapters_is_in_fp32),
        cmocka_unit_test(experts_have_adapters_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
