/* Keys that somebody wrote and that do nothing in the plan at hand. A profile's keys are about all plans: of them only
 * those are told that the scenario itself, or its user, sets.
 *
 * Rules are looked at in turn: the first that is about a key and holds says why it is silent. */
#include "run/unused_keys.h"

#include <string.h>

#include "base/text.h"
#include "run/ranks.h"
#include "scenario/scenario.h"

/* key: itself, or all below it where it ends with a point. */
typedef struct silence {
    const char *key;
    bool holds;
    const char *why, *cure;
} silence;

enum { RULES_MOST = 40, GROUPS = 8 };

typedef struct rules {
    silence items[RULES_MOST];
    size_t count;
} rules;

#define RULES(...)                                                                               \
    do {                                                                                         \
        const silence all_[] = {__VA_ARGS__};                                                    \
        _Static_assert(sizeof all_ / sizeof all_[0] <= RULES_MOST, "more rules than have room"); \
        memcpy(out->items, all_, sizeof all_);                                                   \
        out->count = sizeof all_ / sizeof all_[0];                                               \
    } while (0)

#define NO_SHARDS   "no parameters are sharded"
#define WIDE        "training.precision has no products in 8 or 4 bits"
#define ROWS        "with scales of rows each product casts for itself"
#define ONE_RECIPE  "it is about fp8 with a scale for each tensor as it is"
#define USE_FSDP    "set parallelism.data_parallel=fsdp"
#define USE_ZERO1   "set parallelism.data_parallel=zero1"
#define ABOUT_ZERO3 "it is about ZeRO-3"
#define USE_ZERO3   "set parallelism.data_parallel=zero3"
#define NO_BUCKETS  "shards of parameters have units, not buckets"
#define USE_DDP     "set parallelism.data_parallel=ddp"
#define USE_FP8     "set training.precision=fp8"
#define USE_EXPERTS "take a model with experts"
#define USE_EXPERT  "set parallelism.expert"
#define TENSORWISE  "set stack.fp8.recipe=tensorwise"

static void of_precision(const dts_plan *plan, rules *out) {
    const dts_stack *s = plan->job.stack;
    const dts_model *m = plan->job.model;
    const bool wide = !dts_plan_quantises(plan), adapts = dts_plan_adapts(plan);
    const bool rows = dts_plan_scales_rows(plan), sharded = dts_plan_shards_parameters(plan);
    const bool whole = plan->storage.product != DTS_FP8 || s->fp8_recipe == DTS_FP8_TENSORWISE;
    const bool current = whole && plan->storage.product != DTS_MXFP8;
    RULES({"stack.fp8.activation_input", !m->gated_ffn || !(s->fuse_bias_gelu || s->compile),
           "it is about a gated activation in one kernel", "set stack.fuse.bias_gelu=true, with a gated model"},
          {"stack.fp8.activation_input", dts_numeric_bytes(plan->storage.activation) <= 1,
           "activations are narrow already", "use wider ones"},
          {"stack.fp8.activation_input", true, NULL, NULL}, /* of inputs in 16 bits, too */
          {"stack.fp8.recipe", true, NULL, NULL},           /* run.c */
          {"stack.fp8.", wide, WIDE, USE_FP8},
          {"stack.fp8.dispatch", m->experts == 0, "no tokens go to experts", USE_EXPERTS},
          {"stack.fp8.dispatch", plan->expert == 1, "all experts are on their own rank", USE_EXPERT},
          {"stack.fp8.dispatch", rows, "tokens with scales of rows are cast behind their exchange", TENSORWISE},
          {"stack.fp8.dispatch", plan->expert_tensor > 1, "ranks that split an expert gather its rows in 16 bits",
           "set parallelism.expert_tensor=1"},
          {"stack.fp8.dispatch", adapts, "adapters read tokens in 16 bits", "leave training.adapters out"},
          {"stack.fp8.cached_weights", rows, ROWS, TENSORWISE},
          {"stack.fp8.cached_weights", sharded, "sharded weights are cast each time they are gathered",
           "set parallelism.data_parallel=zero1"},
          {"stack.fp8.cached_weights", dts_plan_gathers_quantised(plan), "weights are narrow as they are stored",
           "set stack.fp8.primary_weights=false"},
          {"stack.fp8.all_gather", !sharded, NO_SHARDS, USE_FSDP}, {"stack.fp8.all_gather", rows, ROWS, TENSORWISE},
          {"stack.fp8.all_gather", adapts, "frozen weights are gathered as they are stored",
           "leave training.adapters out"},
          {"stack.fp8.primary_weights", sharded, "sharded weights are stored wide", USE_ZERO1},
          {"stack.fp8.primary_weights", rows, ROWS, TENSORWISE},
          {"stack.fp8.attention", !dts_plan_narrow_attention(plan),
           "it is about fp8, recipes tensorwise and delayed, and fused attention without latents", USE_FP8},
          {"stack.fp8.amax_kernel", !current, ONE_RECIPE, TENSORWISE},
          {"stack.fp8.shared_scales", plan->storage.product != DTS_FP8 || (!current && !rows), ONE_RECIPE, TENSORWISE},
          {"stack.fp8.shared_scales", plan->tensor == 1, "one rank has all of each tensor", "set parallelism.tensor"},
          {"stack.fp8.expert_host", m->experts == 0, "no expert casts anything", USE_EXPERTS},
          {"stack.fp8.expert_host", s->experts == DTS_EXPERTS_GROUPED, "all experts of a rank are cast at once",
           "set stack.experts=streams"});
}

static const char *why_no_gather(const dts_plan *plan) {
    return plan->job.parallelism->data_parallel != DTS_DP_ZERO1 ? "only ZeRO-1 gathers what a step has updated"
           : !dts_plan_replicates(plan)                         ? "there is one replica"
           : dts_plan_owns_tensors(plan)                        ? "whole tensors are broadcast"
           : plan->copies > 1 ? "schedules in two directions have no first forward pass to gather beside"
           : plan->job.offload->optimizer != DTS_OFFLOAD_NONE ? "parameters come from the host"
                                                              : "its plan gathers at once behind the step";
}

/* Does ZeRO-3 gather as many units ahead as FSDP? */
static bool reads_prefetch(const dts_stack *stack) {
    dts_stack other = *stack;
    other.fsdp_prefetch++;
    return dts_units_prefetched(&other, DTS_DP_ZERO3) != dts_units_prefetched(stack, DTS_DP_ZERO3);
}

/* Gradients that are whole on every rank wait for the last microbatch anyway; shards never do. */
static bool syncs_anyway(const dts_plan *plan) {
    const dts_parallelism *p = plan->job.parallelism;
    const bool waits = p->data_parallel == DTS_DP_DDP || p->data_parallel == DTS_DP_ZERO1;
    const bool each = p->gradient_sync == DTS_REDUCE_EACH_MICROBATCH;
    const bool flush = p->gradient_sync == DTS_REDUCE_EACH_FLUSH && plan->flushes > 1;
    const bool fsdp = p->data_parallel == DTS_DP_FSDP;
    const bool defers = plan->job.stack->pipeline_defers_reduction && plan->pipeline > 1;
    return waits ? !each && !flush : !fsdp || (each && !defers);
}

static void of_replicas(const dts_plan *plan, rules *out) {
    const dts_parallelism *p = plan->job.parallelism;
    const bool zero1 = p->data_parallel == DTS_DP_ZERO1, zero3 = p->data_parallel == DTS_DP_ZERO3;
    const bool sharded = dts_plan_shards_parameters(plan), alone = !dts_plan_replicates(plan);
    const dts_stack *s = plan->job.stack;
    static const char only[] = "it is about ZeRO-1", replicas[] = "set parallelism.data above 1";
    RULES({"stack.ddp.overlap_gather", !dts_plan_overlaps_gather(plan), why_no_gather(plan),
           zero1 ? "leave it out" : USE_ZERO1},
          {"stack.ddp.owns_tensors", !zero1, only, USE_ZERO1}, {"stack.ddp.whole_fp32", !zero1, only, USE_ZERO1},
          {"stack.ddp.owns_tensors", alone, "there is one replica", replicas},
          {"stack.ddp.whole_fp32", alone, "there is one replica", replicas},
          {"stack.fsdp.called", true, NULL, NULL},       /* hints and searches say it of plans without shards */
          {"stack.launcher", true, NULL, NULL},          /* searches ask it */
          {"stack.device_dispatcher", true, NULL, NULL}, /* exports ask it */
          {"stack.fsdp.", !sharded, NO_SHARDS, USE_FSDP}, {"stack.ddp.", alone, "there is one replica", replicas},
          {"parallelism.gradient_sync", syncs_anyway(plan), "gradients are reduced at that moment anyway",
           "leave it out"},
          {"stack.autocast", !plan->storage.mixed, "training.precision needs none", "set training.precision=amp-bf16"},
          {"stack.autocast", plan->storage.half == DTS_HALF_BY_FSDP, "half precision is FSDP's", USE_DDP},
          {"stack.autocast", plan->storage.half == DTS_HALF_BY_AUTOCAST && plan->context > 1,
           "context parallelism is wrapped by FSDP", "set parallelism.context=1"},
          {"stack.autocast", plan->storage.half == DTS_HALF_BY_AUTOCAST, "it is entered for this plan",
           "set parallelism.tensor"},
          {"stack.fsdp.reduce_fp32", !s->fsdp_mixed_precision, "gradients have the format of their shards",
           "set stack.fsdp.mixed_precision=true"},
          {"stack.fsdp.gathers_stored", s->fsdp_mixed_precision, "parameters are cast before they are gathered",
           "set stack.fsdp.mixed_precision=false"},
          {"stack.ddp.keeps_fresh_gradients", p->data_parallel != DTS_DP_DDP, "it is about plain DDP", USE_DDP},
          {"stack.ddp.bucket", sharded, NO_BUCKETS, USE_DDP}, {"stack.ddp.first_bucket", sharded, NO_BUCKETS, USE_DDP},
          {"stack.ddp.gradient_as_bucket_view", sharded, NO_BUCKETS, USE_DDP},
          {"stack.ddp.overlap", sharded, NO_BUCKETS, USE_DDP},
          {"stack.fsdp.zero3_prefetch", !zero3, ABOUT_ZERO3, USE_ZERO3},
          {"stack.fsdp.prefetch", zero3 && !reads_prefetch(s), "ZeRO-3 has a number of its own",
           "set stack.fsdp.zero3_prefetch"},
          {"stack.fsdp.zero3_host", !zero3, ABOUT_ZERO3, USE_ZERO3},
          {"stack.fsdp.zero3_adapter_host", !zero3, ABOUT_ZERO3, USE_ZERO3},
          {"stack.fsdp.zero3_adapter_host", !dts_plan_adapts(plan), "there are no adapters", "set training.adapters"},
          {"stack.fsdp.reshard_in_pipeline", plan->pipeline == 1, "there is no pipeline", "set parallelism.pipeline"},
          {"stack.fsdp.reshard_in_pipeline", p->reshard_after_forward != DTS_RESHARD_AUTO,
           "parallelism.reshard_after_forward says it", "leave one of them out"});
}

static void of_stages(const dts_plan *plan, rules *out) {
    const dts_parallelism *p = plan->job.parallelism;
    const bool one = plan->pipeline == 1, whole = p->partition.kind != DTS_PARTITION_AUTO;
    static const char none[] = "there is no pipeline", set[] = "set parallelism.pipeline";
    const bool beside = dts_plan_overlaps_p2p(plan, plan->method);
    static const char in_line[] = "transfers stand in line with the kernels",
                      overlap[] = "set stack.pipeline.p2p_overlap=true";
    static const char cut[] = "parallelism.partition says how layers are cut",
                      out_[] = "leave parallelism.partition out";
    RULES({"stack.pipeline.", one, none, set}, {"parallelism.virtual_stages", one && p->virtual_stages > 1, none, set},
          {"parallelism.flushes", one && p->flushes > 1, none, set}, {"parallelism.schedule_costs", one, none, set},
          {"parallelism.partition", one && whole, none, set},
          {"parallelism.schedule", one && strcmp(p->schedule.name, "1f1b") != 0, none, set},
          {"parallelism.order", one && p->order != DTS_ORDER_TENSOR_DATA_PIPELINE, none, set},
          {"stack.pipeline.launch_factor", !plan->job.stack->pipeline_single_process,
           "each stage has a process of its own", "set stack.pipeline.single_process=true"},
          {"stack.pipeline.scatter_gather", plan->tensor == 1, "there is no tensor parallelism",
           "set parallelism.tensor"},
          {"stack.optimizer.post_validation", !dts_plan_post_validates(plan),
           "it is about schedules in one direction that split the backward, and a norm of all gradients",
           "set parallelism.schedule=zb-h1"},
          {"stack.pipeline.host_waits", beside, "transfers go on beside the kernels",
           "set stack.pipeline.p2p_overlap=false"},
          {"stack.pipeline.p2p_sms", !beside, in_line, overlap},
          {"stack.pipeline.p2p_node_sms", !beside, in_line, overlap},
          {"stack.pipeline.uniform_stages", whole, cut, out_}, {"stack.pipeline.parameter_stages", whole, cut, out_},
          {"stack.pipeline.product_stages", whole, cut, out_});
}

static void of_graphs(const dts_plan *plan, rules *out) {
    RULES({"stack.cuda_graph_modules", plan->job.stack->cuda_graphs != DTS_GRAPHS_LAYERS, "no layers are captured",
           "set stack.cuda_graphs=layers"});
}

static void of_experts(const dts_plan *plan, rules *out) {
    const dts_stack *s = plan->job.stack;
    const bool none = plan->job.model->experts == 0, own = plan->expert == 1;
    static const char no[] = "the model has no experts", home[] = "all experts are on their own rank";
    RULES({"stack.experts", none, no, USE_EXPERTS}, {"stack.experts_sms", none, no, USE_EXPERTS},
          {"stack.experts_host", none, no, USE_EXPERTS}, {"stack.device_dispatch_domain", none, no, USE_EXPERTS},
          {"stack.device_dispatch_reads", none, no, USE_EXPERTS}, {"stack.tokens_cross_once", none, no, USE_EXPERTS},
          {"stack.device_dispatch_waits", none, no, USE_EXPERTS},
          {"stack.device_dispatch_domain", own && plan->expert_tensor == 1, home, USE_EXPERT},
          {"stack.device_dispatch_reads", own && plan->expert_tensor == 1, home, USE_EXPERT},
          {"stack.device_dispatch_waits", own, home, USE_EXPERT},
          {"stack.device_dispatch_waits", !dts_plan_execution(plan).device_dispatch, "the host dispatches tokens",
           "set stack.device_dispatch_domain"},
          {"stack.device_dispatch_waits", plan->job.model->capacity_factor > 0, "padded experts need no counts",
           "set model.capacity_factor=0"},
          {"stack.device_dispatch_waits", plan->expert_tensor > 1, "ranks that split experts exchange by all-to-all",
           "set parallelism.expert_tensor=1"},
          {"stack.fuse.permute", none, no, USE_EXPERTS}, {"stack.fuse.expert_bias", none, no, USE_EXPERTS},
          {"parallelism.expert", none && plan->expert > 1, no, USE_EXPERTS},
          {"stack.experts_sms", own, home, USE_EXPERT}, {"stack.tokens_cross_once", own, home, USE_EXPERT},
          {"stack.device_dispatch_reads", s->device_dispatch_domain == 0, "the host dispatches tokens",
           "set stack.device_dispatch_domain"},
          {"stack.shared_expert_overlap", plan->job.model->shared_expert_ffn_hidden == 0, "there is no shared expert",
           "set model.shared_expert_ffn_hidden"},
          {"stack.shared_expert_overlap", own && plan->expert_tensor == 1, home, USE_EXPERT},
          {"stack.shared_expert_overlap", dts_plan_execution(plan).device_dispatch, "the device dispatches tokens",
           "set stack.device_dispatch_domain=0"},
          {"model.nodes_per_token", none, no, USE_EXPERTS}, {"model.nodes_per_token", own, home, USE_EXPERT});
}

static void of_split_layers(const dts_plan *plan, rules *out) {
    const dts_parallelism *p = plan->job.parallelism;
    const bool one = plan->tensor == 1, ring = p->context_method == DTS_CONTEXT_RING;
    const bool whole = !p->sequence;
    static const char no[] = "there is no tensor parallelism", set[] = "set parallelism.tensor";
    static const char alike[] = "there is no sequence parallelism",
                      split[] = "set parallelism.sequence=true, with parallelism.tensor";
    RULES({"stack.ring_attention.", plan->context == 1, "there is no context parallelism", "set parallelism.context"},
          {"stack.ring_attention.", !ring, "context parallelism is no ring", "set parallelism.context_method=ring"},
          {"parallelism.context_method", plan->context == 1 && !ring, "there is no context parallelism",
           "set parallelism.context"},
          {"stack.tensor_backward_overlap", one, no, set}, {"stack.tensor_overlap_sms", one, no, set},
          {"stack.few_kv_heads", dts_model_kv_heads(plan->job.model) % plan->tensor == 0,
           "each rank has heads of its own", set},
          {"stack.parallel_blocks", plan->job.model->parallel_block == DTS_PARALLEL_NONE,
           "the model's blocks follow one another", "set model.parallel_block"},
          {"stack.parallel_blocks", one, no, set}, {"stack.whole_embedding", one, no, set},
          {"stack.gathers_logits", one, no, set}, {"stack.tensor_overlap", whole, alike, split},
          {"stack.tensor_copies", !p->sequence, alike, split}, {"stack.gathers_each", whole, alike, split},
          {"stack.keeps_gathered", whole, alike, split},
          {"stack.user_buffers.", !plan->async_tensor, "transfers are not cut into chunks",
           "set parallelism.async_tensor=true"},
          {"stack.async_backward", !plan->async_tensor, "transfers are not cut into chunks",
           "set parallelism.async_tensor=true"});
}

static void of_the_rest(const dts_plan *plan, rules *out) {
    const dts_stack *s = plan->job.stack;
    const dts_model *m = plan->job.model;
    const bool flash = s->attention == DTS_ATTENTION_FLASH;
    static const char fused[] = "attention is fused", eager[] = "attention is not fused";
    static const char flash_help[] = "set stack.attention=flash", eager_help[] = "set stack.attention=materialised";
    static const char gpu[] = "no CPU steps", cpu[] = "set offload.optimizer=cpu";
    static const char reader[] = "it is for the reader, and no number follows from it", leave[] = "leave it out";
    const bool stays = plan->job.offload->optimizer == DTS_OFFLOAD_NONE;
    const dts_flash_profile *rates = &plan->job.cluster->gpu.flash;
    RULES({"stack.cudnn_attention", !flash, eager, flash_help}, {"stack.aiter_attention", !flash, eager, flash_help},
          {"stack.aiter_attention", rates->aiter <= 0 && rates->aiter_backward <= 0, "AITER has none for this GPU",
           "set cluster.gpu.flash.aiter"},
          {"stack.flash_speed", !flash, eager, flash_help}, {"stack.flash_narrow_speed", !flash, eager, flash_help},
          {"stack.positions_first", !flash, eager, flash_help}, {"stack.scores_buffer", flash, fused, eager_help},
          {"stack.softmax_keys", flash, fused, eager_help}, {"stack.keeps_softmax_input", flash, fused, eager_help},
          {"stack.fuse.softmax", flash, fused, eager_help},
          {"stack.compile_loss", !s->compile, "nothing is compiled", "set stack.compile=true"},
          {"stack.fuse.epilogues", !m->bias && !m->qkv_bias && m->gated_ffn,
           "products have no bias, and no plain activation behind them", "set model.bias=true"},
          {"stack.fuse.rotary", !m->rotary, "the model has no rotary embedding", "set model.rotary=true"},
          {"stack.complex_rotary", !m->rotary, "the model has no rotary embedding", "set model.rotary=true"},
          {"stack.matrix_rotary", !m->rotary, "the model has no rotary embedding", "set model.rotary=true"},
          {"stack.bert.", m->architecture != DTS_ARCH_BERT, "the model is no BERT", "take model bert-large"},
          {"stack.joined_adapters", !dts_plan_adapts(plan), "there are no adapters", "set training.adapters"},
          {"stack.fuse.scaled_rotary", !m->rotary_scaled, "the model's embedding has no factor",
           "set model.rotary_scaled=true"},
          {"stack.fuse.clamp", !(m->activation_clamp > 0), "the model cuts nothing off", "set model.activation_clamp"},
          {"stack.mask_bool_bytes", !(m->dropout && s->dropout), "there is no dropout", "set stack.dropout=true"},
          {"stack.keeps_half_gradients", !s->master_weights, "there are no master weights",
           "set stack.master_weights=true"},
          {"stack.optimizer.newton_schulz_steps", !dts_job_orthogonalises(&plan->job), "training.optimizer is not muon",
           "set training.optimizer=muon"},
          {"stack.optimizer.splits_qkv", !dts_job_orthogonalises(&plan->job), "training.optimizer is not muon",
           "set training.optimizer=muon"},
          {"stack.optimizer.cpu_bandwidth", stays, gpu, cpu}, {"stack.optimizer.cpu_threads", stays, gpu, cpu},
          {"stack.optimizer.cpu_thread_bandwidth", stays, gpu, cpu},
          {"offload.activation_layers", plan->job.offload->activations == DTS_OFFLOAD_NONE,
           "activations stay on the GPU", "set offload.activations=cpu"},
          {"offload.prefetch", !dts_plan_offloads(plan), "nothing is offloaded", cpu},
          {"offload.pin_memory", !dts_plan_offloads(plan), "nothing is offloaded", cpu},
          {"input.", !dts_plan_loads_input(plan), "samples lie ready", "set input.sample_cost"},
          {"cluster.gpu.clock", true, reader, leave}, {"cluster.gpu.l2", true, reader, leave},
          {"cluster.gpu.power", true, reader, leave},
          {"cluster.gpu.link.count", true, "it is for the reader", "set cluster.gpu.link.bandwidth, of all links"},
          {"cluster.inter.nic_bandwidth", true, "it only bounds what a node gets out of its adapters",
           "set cluster.inter.node_goodput"},
          {"cluster.inter.transport", true, "what it gives stands beside it",
           "set cluster.inter.node_goodput and cluster.inter.latency"});
}

static void of_passes(const dts_plan *plan, rules *out) {
    const dts_recompute *again = &plan->job.training->recompute;
    const bool none = again->kind == DTS_RECOMPUTE_NONE;
    const bool selective = again->kind == DTS_RECOMPUTE_SELECTIVE && again->modules == 0;
    const bool fp32 = plan->job.training->precision == DTS_PRECISION_FP32;
    RULES({"stack.selective", !selective, "recomputation is not selective", "set training.recompute=selective"},
          {"stack.recompute_stops_early", none, "nothing is recomputed", "set training.recompute"},
          {"stack.tf32", !fp32 && !dts_plan_adapts(plan), "training.precision has no products in fp32",
           "set training.precision=fp32"},
          {"fidelity.seed", !dts_ranks_are_drawn(plan), "nothing is drawn at random",
           "set cluster.jitter or cluster.gpu_spread"});
}

static const silence *find(const rules *groups, const char *key) {
    for (size_t g = 0; g < GROUPS; g++) {
        for (size_t i = 0; i < groups[g].count; i++) {
            const silence *rule = &groups[g].items[i];
            const size_t length = strlen(rule->key);
            const bool all = rule->key[length - 1] == '.';
            if (rule->holds && (all ? strncmp(key, rule->key, length) : strcmp(key, rule->key)) == 0) {
                return rule->why == NULL ? NULL : rule;
            }
        }
    }
    return NULL;
}

/* What the schema says where nobody does; NULL: nothing. */
static const char *preset_of(const char *key) {
    size_t unused = 0;
    const dts_field *field = dts_schema_find(&dts_scenario_schema, key, &unused);
    return field == NULL ? NULL : field->preset;
}

/* Does it ask for anything? What is switched off, none of, or as it is anyway need not count. */
static bool asks(const dts_provenance_entry *entry) {
    static const char *const nothing[] = {"false", "none", "auto", "0"};
    const char *preset = preset_of(entry->key);
    bool is = preset == NULL || strcmp(entry->value, preset) != 0;
    for (size_t i = 0; i < sizeof nothing / sizeof nothing[0]; i++) {
        is = is && strcmp(entry->value, nothing[i]) != 0;
    }
    return is;
}

/* The files that say what is trained, and what any software profile says; NULL: none does. */
typedef struct files {
    const char *job, *stack;
} files;

static const char *file_of(const dts_provenance *said, const char *key) {
    const dts_provenance_entry *entry = dts_provenance_find(said, key);
    return entry == NULL ? NULL : entry->place.file;
}

/* Did a command's user write it, or the file that says what is trained? A file that writes out a whole profile defines
 * it. */
static bool is_own(const files *from, const dts_provenance_entry *entry) {
    const char *file = entry->place.file;
    if (file == NULL || entry->place.origin == DTS_ORIGIN_SET) {
        return file != NULL;
    }
    const bool stack = strncmp(entry->key, "stack.", 6) == 0, machine = strncmp(entry->key, "cluster.", 8) == 0;
    const bool defines = stack && from->stack != NULL && strcmp(from->stack, file) == 0;
    return from->job != NULL && strcmp(from->job, file) == 0 && !defines && !machine;
}

/* All keys that are silent for the same reason and have the same cure, in one line; they have no reason any more. */
static const char *text_of(const dts_provenance *said, const silence *reason, const silence **reasons,
                           dts_arena *arena) {
    dts_text text = {0};
    size_t keys = 0;
    for (size_t i = 0; i < dts_provenance_count(said); i++) {
        if (reasons[i] != NULL && strcmp(reasons[i]->why, reason->why) == 0 &&
            strcmp(reasons[i]->cure, reason->cure) == 0) {
            dts_text_printf(&text, "%s%s", keys++ > 0 ? ", " : "", dts_provenance_get(said, i)->key);
            reasons[i] = NULL;
        }
    }
    dts_text_printf(&text, " %s nothing here: %s; %s", keys > 1 ? "do" : "does", reason->why, reason->cure);
    const char *line = text.failed ? NULL : dts_arena_strdup(arena, dts_text_string(&text));
    dts_text_free(&text);
    return line;
}

dts_status dts_warn_of_silent(const dts_plan *plan, const dts_provenance *said, size_t most, dts_result *result) {
    const size_t count = dts_provenance_count(said);
    const files from = {.job = file_of(said, "training.global_batch"), .stack = file_of(said, "stack.launch")};
    const silence **reasons = dts_arena_array(result->arena, count, sizeof *reasons); /* of what is to be told */
    rules *groups = dts_arena_array(result->arena, GROUPS, sizeof *groups);
    if (reasons == NULL || groups == NULL) {
        return DTS_NOMEM;
    }
    of_precision(plan, &groups[0]);
    of_replicas(plan, &groups[1]);
    of_stages(plan, &groups[2]);
    of_experts(plan, &groups[3]);
    of_split_layers(plan, &groups[4]);
    of_passes(plan, &groups[5]);
    of_the_rest(plan, &groups[6]);
    of_graphs(plan, &groups[7]);
    for (size_t i = 0; i < count; i++) {
        const dts_provenance_entry *entry = dts_provenance_get(said, i);
        reasons[i] = is_own(&from, entry) && asks(entry) ? find(groups, entry->key) : NULL;
    }
    for (size_t i = 0; i < count && result->warning_count < most; i++) {
        if (reasons[i] == NULL) {
            continue;
        }
        const char *line = text_of(said, reasons[i], reasons, result->arena);
        if (line == NULL) {
            return DTS_NOMEM;
        }
        result->warnings[result->warning_count++] = line;
    }
    return DTS_OK;
}
