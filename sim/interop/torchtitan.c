/* torchtitan: the Python configuration it reads since February 2026, the same as command-line overrides, and the TOML
 * files before that. Today batches are counted in tokens; TOML counts samples of a rank.
 *
 * Sources: pytorch/torchtitan torchtitan/config, torchtitan/distributed/parallel_dims.py and docs, commit b5bcd76; the
 * TOML keys before commit 9810191. */
#include <string.h>

#include "base/quote.h"
#include "interop/inside.h"

#define P(key)     "parallelism." key
#define BF16_PARAM "training.mixed_precision_param=bfloat16; training.mixed_precision_reduce=float32"

static const dts_mapping plan_rules[] = {
    BOTH("parallelism.data_parallel=fsdp; parallelism.reshard_after_forward=auto",
         P("fsdp_reshard_after_forward=default")),
    BOTH("parallelism.data_parallel=fsdp; parallelism.reshard_after_forward=true",
         P("fsdp_reshard_after_forward=always")),
    BOTH("parallelism.data_parallel=fsdp; parallelism.reshard_after_forward=false",
         P("fsdp_reshard_after_forward=never")),
    IN("parallelism.data_parallel=ddp", P("data_parallel_shard_degree=1")),
    OUT("parallelism.data_parallel=ddp", ""),
    NEAREST("parallelism.data_parallel=zero3", P("fsdp_reshard_after_forward=always"),
            "FSDP is nearest: the same shards, gathered per block"),
    NEAREST("parallelism.data_parallel=zero2", P("fsdp_reshard_after_forward=never"),
            "FSDP that keeps gathered parameters is nearest: ZeRO-2's traffic, with whole 16-bit weights"),
    NEAREST("parallelism.data_parallel=zero1", P("fsdp_reshard_after_forward=never"),
            "FSDP that keeps gathered parameters is nearest; it shards gradients too"),
    REFUSED("parallelism.data_parallel=*", "no single-process data parallelism: set parallelism.data_parallel=ddp"),
    IN("parallelism.data_parallel=fsdp", ""),
    OUT("parallelism.reshard_after_forward=*", ""),
    OUT("plan.replicate=@; parallelism.data_parallel=ddp", P("data_parallel_replicate_degree=@")),
    OUT("plan.replicate=@; parallelism.data_parallel=fsdp", P("data_parallel_replicate_degree=@")),
    OUT("plan.replicate=@; parallelism.data_parallel=zero3", P("data_parallel_replicate_degree=@")),
    OUT("plan.replicate=1", P("data_parallel_replicate_degree=1")),
    OUT("plan.replicate=*", P("data_parallel_replicate_degree=1")),
    IN("plan.replicate=@", P("data_parallel_replicate_degree=@")),
    IN("plan.replicate=1", ""),
    OUT("plan.shard=@; parallelism.data_parallel=ddp", P("data_parallel_shard_degree=1")),
    OUT("plan.shard=@; parallelism.data_parallel=fsdp", P("data_parallel_shard_degree=@")),
    OUT("plan.shard=@; parallelism.data_parallel=zero3", P("data_parallel_shard_degree=@")),
    OUT("plan.shard=*", P("data_parallel_shard_degree=-1")),
    IN("plan.shard=@", P("data_parallel_shard_degree=@")),
    OUT("parallelism.shard_group=*", ""),
    OUT("parallelism.data=*", ""),
    BOTH("parallelism.tensor=@", P("tensor_parallel_degree=@")),
    IN("parallelism.tensor=1", ""),
    OUT("parallelism.sequence=*; parallelism.tensor=1", ""),
    IN("parallelism.sequence=false", P("tensor_parallel_degree=1")),
    BOTH("parallelism.sequence=true", P("enable_sequence_parallel=true")),
    BOTH("parallelism.sequence=false", P("enable_sequence_parallel=false")),
    IN("parallelism.sequence=true", P("tensor_parallel_degree=*")),
    BOTH("parallelism.context=@", P("context_parallel_degree=@")),
    IN("parallelism.context=1", ""),
    OUT("parallelism.context_method=*; parallelism.context=1", ""),
    /* torch.distributed's ring attention, whose blocks come by one gather or by rotation */
    BOTH("parallelism.context_method=ring; stack.ring_attention.gathers=false",
         P("context_parallel_rotate_method=alltoall")),
    BOTH("parallelism.context_method=ring", P("context_parallel_rotate_method=allgather")),
    IN("parallelism.context_method=ring", ""),
    NEAREST("parallelism.context_method=*", P("context_parallel_rotate_method=allgather"),
            "context parallelism is a ring, whose ranks gather keys and values at once: ring is nearest"),
    BOTH("parallelism.pipeline=@", P("pipeline_parallel_degree=@")),
    IN("parallelism.pipeline=1", ""),
    BOTH("parallelism.expert=@", P("expert_parallel_degree=@")),
    IN("parallelism.expert=1", ""),
    OUT("parallelism.expert_tensor=1", ""),
    BOTH("parallelism.expert_tensor=@", P("expert_tensor_parallel_degree=@")),
    OUT("parallelism.schedule=*; parallelism.pipeline=1", ""),
    BOTH("parallelism.schedule=1f1b", P("pipeline_parallel_schedule=1F1B")),
    BOTH("parallelism.schedule=gpipe", P("pipeline_parallel_schedule=GPipe")),
    BOTH("parallelism.schedule=interleaved-1f1b", P("pipeline_parallel_schedule=Interleaved1F1B")),
    BOTH("parallelism.schedule=looped-bfs", P("pipeline_parallel_schedule=LoopedBFS")),
    BOTH("parallelism.schedule=interleaved-zb1p", P("pipeline_parallel_schedule=InterleavedZeroBubble")),
    BOTH("parallelism.schedule=zbv", P("pipeline_parallel_schedule=ZBVZeroBubble")),
    BOTH("parallelism.schedule=dualpipev", P("pipeline_parallel_schedule=DualPipeV")),
    NEAREST("parallelism.schedule=dualpipe", P("pipeline_parallel_schedule=DualPipeV"),
            "its form folded into a V is nearest: dualpipev"),
    NEAREST("parallelism.schedule=*; parallelism.virtual_stages=2", P("pipeline_parallel_schedule=ZBVZeroBubble"),
            "zbv is nearest"),
    NEAREST("parallelism.schedule=*; plan.interleaved=true", P("pipeline_parallel_schedule=Interleaved1F1B"),
            "interleaved-1f1b is nearest"),
    NEAREST("parallelism.schedule=*", P("pipeline_parallel_schedule=1F1B"),
            "1f1b is nearest; an order of your own can be given as pipeline_parallel_schedule_csv"),
    IN("parallelism.schedule=1f1b", ""),
    OUT("parallelism.virtual_stages=*", ""),
    OUT("parallelism.flushes=*", ""), /* local_batch_size */
    OUT("plan.stage_layers=@; plan.pipelined=true",
        P("pipeline_parallel_layers_per_stage=@; parallelism.pipeline_parallel_first_stage_less_layers=0; "
          "parallelism.pipeline_parallel_last_stage_less_layers=0")),
    IN("plan.stage_layers=@", P("pipeline_parallel_layers_per_stage=@")),
    IN("parallelism.partition=uniform",
       P("pipeline_parallel_first_stage_less_layers=0; parallelism.pipeline_parallel_last_stage_less_layers=0")),
    NEAREST("parallelism.partition=*; plan.layout=*", "", "module_fqns_per_model_part lists what each stage holds"),
    OUT("parallelism.partition=*", ""),
    OUT("parallelism.order=tensor-data-pipeline", ""),
    BOTH("plan.steps=@", "training.steps=@"),
    OUT("training.tokens=*", ""),
    OUT("training.sequence_length=*", ""),
    OUT("training.adapters=none", ""),
    NEAREST("training.adapters=*", "", "all weights are trained: torchtune's recipes have adapters"),
    IN("training.optimizer=adamw", "optimizer.name=AdamW"),
    IN("training.optimizer=adam", "optimizer.name=Adam"),
    BOTH("training.precision=amp-bf16", BF16_PARAM),
    /* torchtitan/distributed/utils.py, maybe_enable_amp */
    NEAREST("training.precision=bf16", BF16_PARAM,
            "fp32 weights that FSDP casts for use are nearest, and nothing else casts beside pipelines and tensor "
            "parallelism; training.dtype=bfloat16 keeps no master copy"),
    BOTH("training.precision=fp32", "training.mixed_precision_param=float32"),
    IN("training.precision=amp-bf16", "training.mixed_precision_param=bfloat16"),
    NEAREST("training.precision=*", BF16_PARAM,
            "bf16 is written; 8-bit products are a converter: Float8LinearConverter.Config()"),
    IN("training.precision=amp-bf16", ""),
    BOTH("offload.parameters=cpu", "training.enable_cpu_offload=true"),
    BOTH("offload.parameters=none", ""),
    REFUSED("offload.parameters=*", "host memory is nearest: set offload.parameters=cpu"),
    OUT("offload.optimizer=cpu; offload.parameters=cpu", ""),
    IN("offload.optimizer=cpu", "training.enable_cpu_offload=true"),
    OUT("offload.optimizer=none", ""),
    REFUSED("offload.optimizer=*", "parameters, gradients and optimizer go together: set offload.parameters=cpu too"),
    OUT("offload.gradients=@; offload.parameters=@", ""),
    NEAREST("offload.gradients=*", "",
            "parameters, gradients and optimizer go together: set offload.gradients=cpu too"),
    IN("offload.gradients=cpu", "training.enable_cpu_offload=true"),
    OUT("offload.activations=none", ""),
    NEAREST("offload.activations=*", "", "recomputation instead: training.recompute=selective"),
    {0},
};

/* Its policy names operators whose outputs are kept (torchtitan/distributed/activation_checkpoint.py), no modules. */
#define BY_OPERATORS \
    "torchtitan chooses operators, not modules: selective recomputation, which is by operators, is nearest"

static const dts_mapping token_rules[] = {
    BOTH("training.sequence_length=@", "training.max_context_length=@"),
    OUT("training.micro_batch=*", ""),
    OUT("training.global_batch=*", ""),
    BOTH("plan.microbatch_tokens=@", "training.num_tokens_per_microbatch_per_dp_rank=@"),
    BOTH("plan.step_tokens=@", "training.num_tokens_per_train_step=@"),
    OUT("plan.microbatches=@; plan.pipelined=true", "parallelism.num_pp_microbatches=@"),
    IN("plan.microbatches=@", "parallelism.num_pp_microbatches=@"),
    BOTH("parallelism.async_tensor=true", "compile.enable_async_tensor_parallel=true; compile.enable=true"),
    BOTH("parallelism.async_tensor=false", ""),
    BOTH("training.recompute=none", "activation_checkpoint=None"),
    BOTH("training.recompute=selective", "activation_checkpoint=SelectiveAC.Config()"),
    BOTH("training.recompute=full", "activation_checkpoint=FullAC.Config()"),
    NEAREST("training.recompute={modules: @}", "activation_checkpoint=SelectiveAC.Config()", BY_OPERATORS),
    NEAREST("training.recompute=*", "activation_checkpoint=FullAC.Config()", "full recomputation is nearest"),
    {0},
};

/* The command line chooses a class for activation_checkpoint by subcommand; flags cannot. Flags of 2025 are the TOML's
 * keys. */
static const dts_mapping token_rules_cli[] = {
    BOTH("training.sequence_length=@", "training.max_context_length=@"),
    IN("training.sequence_length=@", "training.seq_len=@"),
    OUT("training.micro_batch=*", ""),
    IN("training.micro_batch=@", "parallelism.pipeline_parallel_microbatch_size=@"),
    OUT("training.global_batch=*", ""),
    IN("training.global_batch=@", "training.global_batch_size=@"),
    IN("plan.rank_samples=@", "training.local_batch_size=@"),
    IN("stack.compile=@", "compile.enable=@"),
    IN("stack.compile=@", "training.compile=@"),
    IN("training.recompute=none", "activation_checkpoint.mode=none"),
    IN("training.recompute=selective", "activation_checkpoint.mode=selective"),
    IN("training.recompute=full", "activation_checkpoint.mode=full"),
    BOTH("plan.microbatch_tokens=@", "training.num_tokens_per_microbatch_per_dp_rank=@"),
    BOTH("plan.step_tokens=@", "training.num_tokens_per_train_step=@"),
    OUT("plan.microbatches=@; plan.pipelined=true", "parallelism.num_pp_microbatches=@"),
    IN("plan.microbatches=@", "parallelism.num_pp_microbatches=@"),
    BOTH("parallelism.async_tensor=true", "compile.enable_async_tensor_parallel=true; compile.enable=true"),
    BOTH("parallelism.async_tensor=false", ""),
    IN("plan.nodes=@", "nnodes=@"),
    IN("plan.gpus_per_node=@", "nproc-per-node=@"),
    {0},
};

/* Flavors whose sizes a profile of ours has: torchtitan/models/llama3/__init__.py. */
static const dts_mapping flavors[] = {
    IN("plan.model=llama-3-8b", "model.name=llama3; model.flavor=8B"),
    IN("plan.model=llama-3-70b", "model.name=llama3; model.flavor=70B"),
    IN("plan.model=llama-3-405b", "model.name=llama3; model.flavor=405B"),
    {0},
};

/* torchao's converters, in files and flags of 2025; their sections were [float8] and [mx] before they were
 * [quantize.linear.float8] and [quantize.linear.mx]. A section counts where its converter is among model.converters,
 * which split_converters() makes a key of each. Applied last: the rules of plans know no other precision than FSDP's.
 */
#define OLD             "float8."
#define NEW             "quantize.linear.float8."
#define CONVERTER_KEY   "model.converters."
#define CONVERTER(name) CONVERTER_KEY name "=true"
#define FLOAT8(recipe)  CONVERTER("float8") "; " OLD "recipe_name=" recipe
#define LINEAR8(recipe) CONVERTER("quantize.linear.float8") "; " NEW "recipe_name=" recipe
static const dts_mapping float8_rules[] = {
    IN("training.precision=fp8; stack.fp8.recipe=rowwise", FLOAT8("rowwise")),
    IN("training.precision=fp8; stack.fp8.recipe=rowwise", LINEAR8("rowwise")),
    IN("training.precision=fp8; stack.fp8.recipe=rowwise-with-gw-hp", FLOAT8("rowwise_with_gw_hp")),
    IN("training.precision=fp8; stack.fp8.recipe=rowwise-with-gw-hp", LINEAR8("rowwise_with_gw_hp")),
    IN("training.precision=fp8; stack.fp8.recipe=tensorwise", FLOAT8("tensorwise")),
    IN("training.precision=fp8; stack.fp8.recipe=tensorwise", LINEAR8("tensorwise")),
    IN("training.precision=mxfp8", CONVERTER("mx") "; mx.recipe_name=mxfp8@"),
    IN("training.precision=mxfp8", CONVERTER("quantize.linear.mx") "; quantize.linear.mx.recipe_name=mxfp8@"),
    IN("training.precision=fp8", CONVERTER("float8")),
    IN("training.precision=fp8", CONVERTER("quantize.linear.float8")),
    IN("training.precision=mxfp8", CONVERTER("mx")),
    IN("training.precision=mxfp8", CONVERTER("quantize.linear.mx")),
    IN("stack.fp8.all_gather=@", CONVERTER("float8") "; " OLD "enable_fsdp_float8_all_gather=@"),
    IN("stack.fp8.all_gather=@", CONVERTER("quantize.linear.float8") "; " NEW "enable_fsdp_float8_all_gather=@"),
    IN("stack.fp8.all_gather=false", CONVERTER("float8")),
    IN("stack.fp8.all_gather=false", CONVERTER("quantize.linear.float8")),
    {0},
};

/* torchao: float8/config.py (Float8LinearRecipeName), prototype/mx_formats/config.py. */
#define ROWS "tensorwise, rowwise, rowwise_with_gw_hp"
#define MX   "mxfp8_cublas, mxfp8_cublas_rceil, mxfp8_rceil, mxfp8_cutlass, mxfp8_emulated"
static const dts_choice float8_choices[] = {
    {OLD "recipe_name", ROWS, CONVERTER_KEY "float8", "mxfp8 is the converter mx"},
    {NEW "recipe_name", ROWS, CONVERTER_KEY "quantize.linear.float8", "mxfp8 is the converter quantize.linear.mx"},
    {"mx.recipe_name", MX, CONVERTER_KEY "mx", "products in fp4 cannot be simulated with this converter"},
    {"quantize.linear.mx.recipe_name", MX, CONVERTER_KEY "quantize.linear.mx",
     "products in fp4 cannot be simulated with this converter"},
    {NULL, NULL, NULL, NULL},
};
#undef OLD
#undef NEW

/* "float8,mx", or ["float8", "mx"]: a key for each. */
static void split_converters(dts_settings *theirs) {
    const dts_setting *list = dts_settings_find(theirs, "model.converters");
    if (list == NULL) {
        return;
    }
    static const char between[] = "[]\", ";
    const dts_place place = list->place;
    const size_t index = (size_t)(list - theirs->items);
    for (const char *at = list->value + strspn(list->value, between); *at != '\0'; at += strspn(at, between)) {
        const size_t length = strcspn(at, between);
        const char *path = dts_arena_printf(theirs->arena, CONVERTER_KEY "%.*s", (int)length, at);
        theirs->failed = theirs->failed || path == NULL || dts_settings_add(theirs, path, "true", &place) == NULL;
        at += length;
    }
    theirs->count--; /* the keys stand for it */
    memmove(theirs->items + index, theirs->items + index + 1, (theirs->count - index) * sizeof *theirs->items);
}

static dts_status read_toml(const char *text, size_t length, const char *name, dts_settings *out, dts_diag *diag) {
    dts_status status = dts_read_toml(text, length, name, out, diag);
    split_converters(out);
    return status;
}

static dts_status read_flags(const char *text, size_t length, const char *name, dts_settings *out, dts_diag *diag) {
    dts_status status = dts_read_shell(text, length, name, out, diag);
    split_converters(out);
    return status;
}

/* Names of 2024, up to torchtitan 0.1: torchtitan/config_manager.py then. Its software is another profile. */
#define X(key)       "experimental." key
#define T(key)       "training." key
#define OF_2024(key) IN("plan.stack=torchtitan", key "=*")
static const dts_mapping old_rules[] = {
    OF_2024(T("tensor_parallel_degree")),
    OF_2024(T("data_parallel_degree")),
    OF_2024(T("data_parallel_shard_degree")),
    OF_2024(T("data_parallel_replicate_degree")),
    OF_2024(X("pipeline_parallel_degree")),
    OF_2024(X("context_parallel_degree")),
    IN("parallelism.tensor=@", T("tensor_parallel_degree=@")),
    IN("parallelism.sequence=false", T("tensor_parallel_degree=1")),
    IN("parallelism.sequence=true", T("tensor_parallel_degree=*")),
    IN("plan.shard=@", T("data_parallel_degree=@")),
    IN("plan.shard=@", T("data_parallel_shard_degree=@")),
    IN("plan.replicate=@", T("data_parallel_replicate_degree=@")),
    IN("parallelism.pipeline=@", X("pipeline_parallel_degree=@")),
    IN("parallelism.context=@", X("context_parallel_degree=@")),
    IN("parallelism.schedule=1f1b", X("pipeline_parallel_schedule=1F1B")),
    IN("parallelism.schedule=gpipe", X("pipeline_parallel_schedule=GPipe")),
    IN("parallelism.schedule=interleaved-1f1b", X("pipeline_parallel_schedule=Interleaved1F1B")),
    IN("plan.microbatches=@", X("pipeline_parallel_microbatches=@")),
    IN("parallelism.async_tensor=true", X("enable_async_tensor_parallel=true")),
    IN("training.precision=fp8; stack.fp8.recipe=tensorwise", "float8.enable_float8_linear=true"),
    IN("stack.fp8.all_gather=@", "float8.enable_float8_linear=true; float8.enable_fsdp_float8_all_gather=@"),
    {0},
};
#undef X
#undef T

static const dts_mapping toml_rules[] = {
    BOTH("training.sequence_length=@", "training.seq_len=@"),
    BOTH("training.global_batch=@", "training.global_batch_size=@"),
    OUT("training.micro_batch=@; plan.pipelined=true", "parallelism.pipeline_parallel_microbatch_size=@"),
    OUT("training.micro_batch=@", "training.local_batch_size=@"),
    IN("training.micro_batch=@", "parallelism.pipeline_parallel_microbatch_size=@"),
    OUT("plan.rank_samples=@; plan.pipelined=true", "training.local_batch_size=@"),
    IN("plan.rank_samples=@", "training.local_batch_size=@"),
    IN("plan.rank_samples=@", "training.batch_size=@"),
    BOTH("parallelism.async_tensor=true", "parallelism.enable_async_tensor_parallel=true; compile.enable=true"),
    IN("parallelism.async_tensor=true", "parallelism.enable_async_tensor_parallel=true; training.compile=true"),
    BOTH("parallelism.async_tensor=false", ""),
    IN("stack.compile=@", "compile.enable=@"),
    IN("stack.compile=@", "training.compile=@"),
    BOTH("training.recompute=none", "activation_checkpoint.mode=none"),
    BOTH("training.recompute=selective",
         "activation_checkpoint.mode=selective; activation_checkpoint.selective_ac_option=op"),
    BOTH("training.recompute=full", "activation_checkpoint.mode=full"),
    IN("training.recompute=selective", "activation_checkpoint.mode=selective"),
    NEAREST("training.recompute={modules: @}",
            "activation_checkpoint.mode=selective; activation_checkpoint.selective_ac_option=op", BY_OPERATORS),
    NEAREST("training.recompute=*", "activation_checkpoint.mode=full", "full recomputation is nearest"),
    IN("training.recompute=selective", ""),
    {0},
};

static const dts_remark elsewhere[] = {
    {"training.recompute", "no flag: activation_checkpoint of the --config counts; export to torchtitan"},
    {"model.attention_window", "the model's code: see that its attention mask has the windows"},
    {"model", "model.flavor, or model_spec: torchtitan's own list"},
    {"training.optimizer", "the recipe's optimizer"},
    {"cluster", "is the machine"},
    {"stack", "is the installed software"},
    {"input", "the recipe's data loader"},
    {"offload.prefetch", "not to be set"},
    {"offload.pin_memory", "not to be set"},
    {NULL, NULL},
};

#define TIME "no effect on the time of an iteration"
static const dts_remark irrelevant[] = {
    {"job", TIME},
    {"profiling", TIME},
    {"metrics", TIME},
    {"lr_scheduler", TIME},
    {"checkpoint", TIME},
    {"optimizer", TIME},
    {"model.name", "give the model with --set model=NAME or --scenario"},
    {"model.flavor", "give the model with --set model=NAME or --scenario"},
    {"model.norm_type", "the model's profile says it"},
    {"model.tokenizer_path", TIME},
    {"model.hf_assets_path", TIME},
    {"model.print_after_conversion", TIME},
    {"model.converters.quantize.grouped_mm", "products of experts follow training.precision"},
    {"training.dataset", TIME},
    {"training.dataset_path", TIME},
    {"training.seed", TIME},
    {"training.max_norm", "stack.optimizer.gradient_clipping"},
    {"training.dtype", "the software profile says it"},
    {"training.warmup_steps", TIME},
    {"training.data_parallel_type", "fsdp: nothing else is simulated"},
    {"training.mixed_precision_reduce", "stack.fsdp.reduce_fp32"},
    {"training.gc_freq", TIME},
    {"training.deterministic", TIME},
    {"comm", TIME},
    {"validation", TIME},
    {"compile", "stack.compile"},
    {"activation_checkpoint.selective_ac_option", "op is simulated"},
    {"float8", TIME},
    {"quantize", TIME},
    {"fault_tolerance", TIME},
    {"parallelism.pipeline_parallel_first_stage_less_layers", "parallelism.partition"},
    {"parallelism.pipeline_parallel_last_stage_less_layers", "parallelism.partition"},
    {"parallelism.enable_sequence_parallel", "there is no tensor parallelism"},
    {"parallelism.pipeline_parallel_microbatch_size", "there is no pipeline"},
    {"parallelism.fsdp_reshard_after_forward", "nothing is sharded"},
    {"parallelism.disable_loss_parallel", "the output projection is split as the model's"},
    {"parallelism.enable_compiled_autograd", TIME},
    {"module", TIME},
    {"config", "the recipe's own values are not in the flags"},
    {"rdzv-", TIME},
    {"master-", TIME},
    {"node-rank", TIME},
    {NULL, NULL},
};

static dts_status write_python(const dts_settings *settings, const dts_plan_facts *facts, dts_text *out) {
    dts_write_title(facts, " as a torchtitan recipe. Put it into a config_registry.py and start it with", out);
    dts_text_add(out, "#   ");
    dts_write_torchrun(facts, out);
    dts_text_add(out, " -m torchtitan.train --module llama3 --config plan\n");
    dts_text_add(out, "# Change the recipe it begins with to that of the model.\n");
    dts_notes_write(facts->notes, "# ", out);
    dts_text_add(out,
                 "from torchtitan.distributed.activation_checkpoint import FullAC, SelectiveAC\n"
                 "from torchtitan.models.llama3.config_registry import llama3_8b\n\n\n"
                 "def plan():\n    config = llama3_8b()\n");
    for (size_t i = 0; i < settings->count; i++) {
        const dts_setting *s = &settings->items[i];
        bool class = strcmp(s->path, "activation_checkpoint") == 0;
        const char *word = strcmp(s->value, "true") == 0 ? "True" : strcmp(s->value, "false") == 0 ? "False" : NULL;
        dts_text_printf(out, "    config.%s = ", s->path);
        if (class || word != NULL || dts_is_plain_value(s->value)) {
            dts_text_add(out, word != NULL ? word : s->value);
        } else {
            dts_text_add_quoted(out, s->value);
        }
        dts_text_add(out, "\n");
    }
    dts_text_add(out, "    return config\n");
    return dts_text_status(out);
}

static dts_status write_cli(const dts_settings *settings, const dts_plan_facts *facts, dts_text *out) {
    dts_text_add(out, "#!/bin/bash\n");
    dts_write_title(facts, " as flags over a torchtitan recipe.", out);
    dts_notes_write(facts->notes, "# ", out);
    dts_write_torchrun(facts, out);
    dts_text_add(out, " -m torchtitan.train \"$@\"");
    for (size_t i = 0; i < settings->count; i++) { /* a bare flag means true, and there is no other way to say false */
        dts_text_printf(out, " \\\n    --%s ", settings->items[i].path);
        dts_text_add_word(out, settings->items[i].value);
    }
    dts_text_add(out, "\n");
    return dts_text_status(out);
}

static dts_status write_toml(const dts_settings *settings, const dts_plan_facts *facts, dts_text *out) {
    dts_write_title(facts, " for torchtitan before February 2026: CONFIG_FILE=FILE ./run_train.sh", out);
    dts_notes_write(facts->notes, "# ", out);
    dts_write_toml(settings, out);
    return dts_text_status(out);
}

const dts_launcher dts_launcher_torchtitan = {
    .name = "torchtitan",
    .help = "torchtitan: a recipe in Python",
    .stack = "torchtitan-2025",
    .rules = {token_rules, plan_rules, NULL},
    .elsewhere = elsewhere,
    .irrelevant = irrelevant,
    .whole_plan = true,
    .comment = "# ",
    .write = write_python,
};

const dts_launcher dts_launcher_torchtitan_cli = {
    .name = "torchtitan-cli",
    .help = "torchtitan: flags over a recipe",
    .stack = "torchtitan-2025",
    .rules = {token_rules_cli, plan_rules, float8_rules, NULL},
    .elsewhere = elsewhere,
    .irrelevant = irrelevant,
    .whole_plan = true,
    .comment = "# ",
    .choices = float8_choices,
    .models = flavors,
    .write = write_cli,
    .read = read_flags,
};

const dts_launcher dts_launcher_torchtitan_toml = {
    .name = "torchtitan-toml",
    .help = "torchtitan before February 2026: a TOML file",
    .stack = "torchtitan-2025",
    .rules = {toml_rules, plan_rules, float8_rules, old_rules, NULL},
    .elsewhere = elsewhere,
    .irrelevant = irrelevant,
    .whole_plan = true,
    .comment = "# ",
    .choices = float8_choices,
    .models = flavors,
    .write = write_toml,
    .read = read_toml,
};
