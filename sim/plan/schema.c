/* Schema tables of what a scenario says about training, parallelism, offload and input. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/excerpt.h"
#include "plan/internal.h"

static const char *const precision_names[] = {"fp32", "tf32",  "fp16",  "bf16",    "amp-fp16", "amp-bf16",
                                              "fp8",  "mxfp8", "nvfp4", "amp-fp8", NULL};
static const char *const optimizer_names[] = {
    "sgd",  "sgd-momentum",       "adam", "adamw", "adafactor", "adamw-8bit", "lamb",
    "lion", "adafactor-momentum", "none", "muon",  NULL};
static const char *const mode_names[] = {"train", "inference", "decode", NULL};
static const char *const cache_names[] = {"auto", "none", "native", "fp8", NULL};
static const char *const data_parallel_names[] = {"dp", "ddp", "zero1", "zero2", "zero3", "fsdp", NULL};
static const char *const reshard_names[] = {"auto", "true", "false", NULL}; /* as dts_reshard */
static const char *const reduce_names[] = {"auto", "step", "microbatch", "flush", NULL};
static const char *const unit_names[] = {"layer", "linear", NULL};
static const char *const context_names[] = {"ring", "all-to-all", "all-gather", NULL};
static const char *const offload_names[] = {"none", "cpu", "nvme", NULL};
static const char *const costs_names[] = {"measured", "equal", NULL};
static const char *const order_names[] = {"tensor-data-pipeline", "tensor-pipeline-data", NULL};

enum { MOST_GPUS = 1 << 20, MOST_BATCH = 1 << 26, MOST_LAYERS = 100000 };

static const char recompute_help[] =
    "write none, selective, full, except-last, sqrt, {every: 2}, {first: 4} or {modules: [core_attn]}";

const char *const dts_recompute_module_names[DTS_MODULE_COUNT + 1] = {"core_attn", "layernorm", "mla_up_proj",    "mlp",
                                                                      "moe",       "moe_act",   "shared_experts", NULL};

/* Where a word of a scalar stands; where the scalar does, when it goes over several lines or has escapes. */
static dts_place place_of_word(const dts_node *node, const char *word) {
    dts_place place = node->place;
    const size_t before = place.column > 0 ? place.column - 1 : 0, length = strlen(node->text);
    for (size_t quote = 0; quote < 2 && place.line_text != NULL; quote++) {
        if (before + quote + length <= place.line_length &&
            memcmp(place.line_text + before + quote, node->text, length) == 0) {
            place.column += (uint32_t)(quote + (size_t)(word - node->text));
            break;
        }
    }
    return place;
}

int dts_recompute_module_of(const char *name, size_t length) {
    for (int i = 0; i < DTS_MODULE_COUNT; i++) {
        if (strlen(dts_recompute_module_names[i]) == length &&
            strncmp(name, dts_recompute_module_names[i], length) == 0) {
            return i;
        }
    }
    return -1;
}

void dts_recompute_write_modules(int64_t modules, const char *between, dts_text *out) {
    const char *before = "";
    for (int i = 0; i < DTS_MODULE_COUNT; i++) {
        if ((modules >> i & 1) != 0) {
            dts_text_printf(out, "%s%s", before, dts_recompute_module_names[i]);
            before = between;
        }
    }
}

/* Names, apart from each other by spaces. */
static dts_status parse_names(dts_binder *binder, const dts_node *node, const char *key, int64_t *out) {
    static const char help[] = "write core_attn, layernorm, mla_up_proj, mlp, moe, moe_act or shared_experts";
    dts_status status = DTS_OK;
    if (node->kind != DTS_NODE_SCALAR) {
        return dts_diag_error(binder->diag, &node->place, key, help, "a module is a name");
    }
    int64_t found = 0;
    for (const char *word = node->text; *(word += strspn(word, " ")) != '\0'; word += strcspn(word, " ")) {
        const size_t length = strcspn(word, " ");
        const int module = dts_recompute_module_of(word, length);
        if (module < 0) {
            const dts_place place = place_of_word(node, word);
            status = dts_diag_error(binder->diag, &place, key, help, "'%s' is no module of a layer",
                                    dts_excerpt_of_bytes(word, length).text);
        } else {
            found |= (int64_t)1 << module;
        }
    }
    *out |= found;
    return found != 0 || status != DTS_OK ? status
                                          : dts_diag_error(binder->diag, &node->place, key, help, "no module is named");
}

/* {modules: [name, …]}, given its entry; bits of dts_recompute_module. */
static dts_status parse_modules(dts_binder *binder, const dts_node *node, const char *key, const char *help,
                                int64_t *out) {
    if (strcmp(node->key, "modules") != 0 || node->next != NULL) {
        return dts_diag_error(binder->diag, &node->key_place, key, help,
                              strcmp(node->key, "modules") == 0 ? "'%s' stands alone" : "unknown key '%s'",
                              dts_excerpt_of(node->key).text);
    }
    if (node->kind == DTS_NODE_LIST && node->first == NULL) {
        return dts_diag_error(binder->diag, &node->place, key, help, "an empty list of modules");
    }
    const dts_node *item = node->kind == DTS_NODE_LIST ? node->first : node;
    dts_status status = DTS_OK;
    for (; item != NULL; item = item->next) { /* a single one is the last of its map */
        const dts_status parsed = parse_names(binder, item, key, out);
        status = parsed != DTS_OK ? parsed : status;
    }
    return status;
}

/* recompute: none | selective | full | except-last | sqrt | {every: n} | {first: n} | {modules: [name, …]} */
static dts_status parse_recompute(dts_binder *binder, const dts_field *field, const dts_node *node, const char *key,
                                  void *out) {
    static const char *const names[] = {"none", "selective", "full", "except-last", "sqrt", NULL};
    static const dts_field every[] = {{.key = "every",
                                       .type = DTS_FIELD_INT,
                                       .offset = offsetof(dts_recompute, layers),
                                       .required = true,
                                       .minimum = 1,
                                       .maximum = MOST_LAYERS,
                                       .help = "one checkpoint per this many layers"}};
    static const dts_field first[] = {{.key = "first",
                                       .type = DTS_FIELD_INT,
                                       .offset = offsetof(dts_recompute, layers),
                                       .required = true,
                                       .minimum = 1,
                                       .maximum = MOST_LAYERS,
                                       .help = "layers of every chunk that are recomputed; the others are not"}};
    static const dts_schema every_schema = {
        .name = "recompute", .fields = every, .field_count = 1, .struct_size = sizeof(dts_recompute)};
    static const dts_schema first_schema = {
        .name = "recompute", .fields = first, .field_count = 1, .struct_size = sizeof(dts_recompute)};
    (void)field;
    dts_recompute *recompute = out;
    if (node->kind == DTS_NODE_MAP) {
        static const char *const forms[] = {"every", "first", "modules"};
        if (node->first == NULL) {
            return dts_bind(binder, &every_schema, node, key, recompute);
        }
        const char *given = node->first->key;
        const char *form = dts_nearest_name(given, forms, 3);
        if (form == NULL) {
            return dts_diag_error(binder->diag, &node->first->key_place, key, recompute_help, "unknown key '%s'",
                                  dts_excerpt_of(given).text);
        }
        if (node->count > 1) {
            return dts_diag_error(binder->diag, &node->first->next->key_place, key, recompute_help,
                                  "'%s' beside '%s': a recomputation is one of them",
                                  dts_excerpt_of(node->first->next->key).text, dts_excerpt_of(given).text);
        }
        if (strcmp(form, "modules") == 0) {
            recompute->kind = DTS_RECOMPUTE_SELECTIVE;
            return parse_modules(binder, node->first, key, recompute_help, &recompute->modules);
        }
        const bool is_first = strcmp(form, "first") == 0;
        recompute->kind = is_first ? DTS_RECOMPUTE_FIRST : DTS_RECOMPUTE_EVERY;
        return dts_bind(binder, is_first ? &first_schema : &every_schema, node, key, recompute);
    }
    if (node->kind == DTS_NODE_SCALAR) {
        for (int i = 0; names[i] != NULL; i++) {
            if (strcmp(node->text, names[i]) == 0) {
                recompute->kind = i;
                return DTS_OK;
            }
        }
        return dts_diag_error(binder->diag, &node->place, key, recompute_help, "unknown recomputation '%s'",
                              node->text);
    }
    return dts_diag_error(binder->diag, &node->place, key, recompute_help,
                          "a recomputation is a name, {every: n}, {first: n} or {modules: [name]}");
}

/* One entry of a given partition: a positive number of layers. */
static dts_status parse_layer_count(dts_binder *binder, const dts_node *item, const char *key, int64_t *out) {
    char *end = NULL;
    long long layers = item->kind == DTS_NODE_SCALAR && !item->quoted ? strtoll(item->text, &end, 10) : 0;
    if (end == NULL || end == item->text || *end != '\0' || layers < 0 || layers > MOST_LAYERS) {
        return dts_diag_error(binder->diag, &item->place, key, "write layers per stage such as [12, 12]",
                              "a stage needs a number of layers from 0 to %d", MOST_LAYERS);
    }
    *out = layers;
    return DTS_OK;
}

/* partition: auto | balanced | uniform | [layers, …] */
static dts_status parse_partition(dts_binder *binder, const dts_field *field, const dts_node *node, const char *key,
                                  void *out) {
    (void)field;
    dts_partition *partition = out;
    if (node->kind == DTS_NODE_SCALAR) {
        static const char *const names[] = {"auto", "balanced", "uniform"};
        for (int i = 0; i < 3; i++) {
            if (strcmp(node->text, names[i]) == 0) {
                partition->kind = i;
                return DTS_OK;
            }
        }
        return dts_diag_error(binder->diag, &node->place, key,
                              "write auto, balanced, uniform or a list such as [12, 12]", "unknown partition '%s'",
                              node->text);
    }
    if (node->kind != DTS_NODE_LIST || node->count == 0) {
        return dts_diag_error(binder->diag, &node->place, key,
                              "write auto, balanced, uniform or a list such as [12, 12]",
                              "a partition is a name or a list of layers per stage");
    }
    partition->kind = DTS_PARTITION_GIVEN;
    partition->layers = dts_arena_array(binder->arena, node->count, sizeof *partition->layers);
    if (partition->layers == NULL) {
        return dts_diag_nomem(binder->diag);
    }
    dts_status status = DTS_OK;
    for (const dts_node *item = node->first; item != NULL; item = item->next) {
        if (parse_layer_count(binder, item, key, &partition->layers[partition->count++]) != DTS_OK) {
            status = DTS_INVALID;
        }
    }
    return status;
}

#define FIELD(member) .key = #member, .offset = offsetof(STRUCT, member)

const char *const dts_detail_names[] = {"auto", "kernel", "layer", "block", NULL};

#define STRUCT dts_training
static const dts_field training_fields[] = {
    {FIELD(mode), .type = DTS_FIELD_ENUM, .value_hints = dts_mode_hints, .names = mode_names, .preset = "train",
     .help = "inference: forward passes only (the prefill of a batch): no loss, gradients, optimizer, dropout or kept "
             "activations; decode: one new token of each sample, behind sequence_length positions in a cache of keys "
             "and values"},
    {FIELD(global_batch), .type = DTS_FIELD_INT, .required = true, .minimum = 1, .maximum = MOST_BATCH,
     .help = "samples per optimizer step, all replicas together"},
    {FIELD(micro_batch), .type = DTS_FIELD_INT, .required = true, .minimum = 1, .maximum = MOST_BATCH,
     .help = "samples per forward pass of one replica"},
    {FIELD(sequence_length), .type = DTS_FIELD_INT, .required = true, .minimum = 1, .maximum = 1 << 26,
     .help = "tokens per sample"},
    {FIELD(precision), .type = DTS_FIELD_ENUM, .value_hints = dts_precision_hints, .names = precision_names,
     .preset = "amp-bf16",
     .help =
         "number format; amp-…: fp32 master weights with autocast; fp8 (or amp-fp8), mxfp8, nvfp4: amp-bf16 with the "
         "layers' linear products in 8 or 4 bits"},
    {FIELD(kv_cache), .type = DTS_FIELD_ENUM, .names = cache_names, .preset = "auto",
     .help =
         "inference and decode: how keys and values of all samples are kept: none, native (as activations), fp8, or "
         "auto: native for decode, else none"},
    {FIELD(optimizer), .type = DTS_FIELD_ENUM, .names = optimizer_names, .preset = "adamw",
     .help =
         "optimizer: decides the states kept per parameter and the work of a step; none: forward and backward only"},
    {FIELD(recompute), .type = DTS_FIELD_CUSTOM, .one_form = true, .parse = parse_recompute, .preset = "none",
     .help = "activation recomputation: none, selective (attention core), full (per layer), except-last "
             "(full but for the last microbatch, torch Pipe), sqrt (one checkpoint per √n of a chunk's n layers) or "
             "{every: n} layers, {first: n}: the first n layers of every chunk in full, {modules: [layernorm]}: "
             "selective, of core_attn, layernorm, mla_up_proj, mlp, moe, moe_act, shared_experts"},
    {FIELD(adapters), .type = DTS_FIELD_CUSTOM, .parse = dts_plan_parse_adapters, .preset = "none",
     .help = "parameter-efficient fine-tuning: none, or {lora: {rank: 16, targets: query-value, base: native, "
             "double_quantisation: true, dropout: true}}: low-rank adapters are trained, all other weights are frozen"},
    {FIELD(tokens), .type = DTS_FIELD_QUANTITY, .dimension = DTS_DIM_COUNT, .minimum = 1, .maximum = 1e18,
     .help = "tokens of the whole run, e.g. 300B (300e9): asks for its time and money with failures and checkpoints"},
    {.key = "checkpoint_interval",
     .offset = offsetof(STRUCT, checkpoint_interval_s),
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME,
     .minimum = 1e-6,
     .maximum = 1e9,
     .help = "training between two checkpoints of the run; left out: the interval that costs least"},
    {FIELD(checkpoint_asynchronous), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "training waits only for the copy to host memory, and the checkpoint is written beside it"},
};
#undef STRUCT

#define STRUCT dts_parallelism
static const dts_field parallelism_fields[] = {
    {FIELD(data), .type = DTS_FIELD_INT, .minimum = 1, .maximum = MOST_GPUS,
     .help = "data-parallel degree (replicas); one degree may be left out: it follows from the GPU count"},
    {FIELD(tensor), .type = DTS_FIELD_INT, .minimum = 1, .maximum = MOST_GPUS, .help = "tensor-parallel degree"},
    {FIELD(context), .type = DTS_FIELD_INT, .minimum = 1, .maximum = MOST_GPUS, .help = "context-parallel degree"},
    {FIELD(context_method), .type = DTS_FIELD_ENUM, .value_hints = dts_context_hints, .names = context_names,
     .preset = "ring",
     .help = "how context-parallel ranks share attention: ring (keys and values go round), all-to-all (heads are "
             "exchanged for positions) or all-gather (of keys and values)"},
    {FIELD(expert), .type = DTS_FIELD_INT, .minimum = 1, .maximum = MOST_GPUS,
     .help = "expert-parallel degree: ranks of a stage that share one copy of the experts"},
    {FIELD(expert_tensor), .type = DTS_FIELD_INT, .minimum = 1, .maximum = MOST_GPUS, .preset = "1",
     .help = "expert-tensor-parallel degree: ranks of a stage that split each expert"},
    {FIELD(pipeline), .type = DTS_FIELD_INT, .minimum = 1, .maximum = 4096, .help = "pipeline stages (ranks)"},
    {FIELD(virtual_stages), .type = DTS_FIELD_INT, .minimum = 1, .maximum = 1024,
     .help = "model chunks per pipeline rank; left out: 2 for schedules in a V or in two directions, else 1"},
    {FIELD(flushes), .type = DTS_FIELD_INT, .minimum = 1, .maximum = 1000000, .preset = "1",
     .help =
         "runs of the pipeline's schedule in one optimizer step, each of an equal part of its microbatches; nothing "
         "without a pipeline; a search keeps it as it is"},
    {FIELD(data_parallel), .type = DTS_FIELD_ENUM, .value_hints = dts_data_parallel_hints, .names = data_parallel_names,
     .preset = "ddp", .help = "how replicas share gradients, optimizer states and parameters"},
    {FIELD(reshard_after_forward), .type = DTS_FIELD_ENUM, .names = reshard_names, .preset = "auto",
     .help = "fsdp: free the gathered parameters between forward and backward (true, false), or auto: true, but as the "
             "stack's fsdp.reshard_in_pipeline says with a pipeline"},
    {FIELD(gradient_sync), .type = DTS_FIELD_ENUM, .names = reduce_names, .preset = "auto",
     .help =
         "when gradients are reduced: step (once, no_sync of DDP and FSDP), flush (once in each run of the pipeline), "
         "microbatch (after each), or auto: step for ddp and zero1, flush for fsdp in pipelines of a stack with "
         "pipeline.defers_reduction, else microbatch"},
    {FIELD(fsdp_unit), .type = DTS_FIELD_ENUM, .names = unit_names, .preset = "layer",
     .help =
         "fsdp: what is gathered and freed together: a layer, or each linear layer inside it by itself (less memory, "
         "more and smaller collectives; a recomputed layer is gathered three times instead of twice)"},
    {FIELD(shard_group), .type = DTS_FIELD_INT, .minimum = 2, .maximum = MOST_GPUS,
     .help =
         "hybrid sharding: zero1 and more shard inside groups of this many ranks, and groups hold the same; left out: "
         "among all"},
    {FIELD(sequence), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "Megatron sequence parallelism, together with tensor > 1"},
    {FIELD(async_tensor), .type = DTS_FIELD_BOOL, .preset = "false",
     .help = "overlap tensor-parallel communication with the matrix products"},
    {FIELD(schedule), .type = DTS_FIELD_CUSTOM, .parse = dts_plan_parse_schedule, .file_ending = ".csv",
     .preset = "1f1b",
     .help = "pipeline schedule; `dtsim list schedules` names them; or an order of your own, FILE.csv or {file: FILE}"},
    {FIELD(schedule_costs), .type = DTS_FIELD_ENUM, .names = costs_names, .preset = "measured",
     .help =
         "schedules that are made for the times of passes (zb1p-heuristic, zb2p-heuristic, zbv-heuristic): measured "
         "(those of this plan's stages, as a framework profiles them) or equal (F = B = W, no transfers)"},
    {FIELD(partition), .type = DTS_FIELD_CUSTOM, .parse = parse_partition, .preset = "auto",
     .help =
         "how layers are cut into stages: balanced (by cost), uniform, a list of layers per virtual stage, or auto: "
         "as the stack does it, which is balanced where it does not say"},
    {FIELD(order), .type = DTS_FIELD_ENUM, .names = order_names, .preset = "tensor-data-pipeline",
     .help = "which ranks are neighbours, innermost first: tensor-data-pipeline (Megatron-LM) or "
             "tensor-pipeline-data (a pipeline stays inside a node)"},
};
#undef STRUCT

#define STRUCT dts_offload
static const dts_field offload_fields[] = {
    {FIELD(parameters), .type = DTS_FIELD_ENUM, .names = offload_names, .preset = "none",
     .help = "where parameters rest between uses"},
    {FIELD(gradients), .type = DTS_FIELD_ENUM, .names = offload_names, .preset = "none",
     .help = "where gradients rest"},
    {FIELD(optimizer), .type = DTS_FIELD_ENUM, .names = offload_names, .preset = "none",
     .help = "where optimizer states rest and the step runs"},
    {FIELD(activations), .type = DTS_FIELD_ENUM, .names = offload_names, .preset = "none",
     .help = "where saved activations rest between forward and backward"},
    {FIELD(activation_layers), .type = DTS_FIELD_INT, .minimum = 0, .maximum = 1e5, .preset = "0",
     .help = "layers whose activations are offloaded, counted from the first; their copies have the time of the other "
             "layers, whatever prefetch says (Transformer Engine; pipeline 1). 0: those of all layers"},
    {FIELD(prefetch), .type = DTS_FIELD_INT, .minimum = 0, .maximum = 1024, .preset = "1",
     .help =
         "layers by which copies of activations may lag behind forward or run ahead of backward; 0: copies are made "
         "when needed and hold up the work, also those of parameters"},
    {FIELD(pin_memory), .type = DTS_FIELD_BOOL, .preset = "true",
     .help = "pinned host memory; pageable memory is copied twice, and the host waits for it"},
};
#undef STRUCT

#define STRUCT dts_input
static const dts_field input_fields[] = {
    {FIELD(workers), .type = DTS_FIELD_INT, .minimum = 0, .maximum = 4096, .preset = "4",
     .help = "data-loader processes of each training process; 0: it makes its batches itself, between passes"},
    {FIELD(prefetch_factor), .type = DTS_FIELD_INT, .minimum = 1, .maximum = 1024, .preset = "2",
     .help = "batches that each loader process may have ready or under way"},
    {.key = "sample_cost",
     .offset = offsetof(STRUCT, sample_cost_s),
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_TIME,
     .minimum = 0,
     .maximum = 1e5,
     .preset = "0 s",
     .help =
         "time of one CPU core to make a sample: read, decode, augment, collate; 0: samples lie ready, as tokenised "
         "text does for all practical purposes"},
    {.key = "sample_bytes",
     .offset = offsetof(STRUCT, sample_B),
     .type = DTS_FIELD_QUANTITY,
     .dimension = DTS_DIM_BYTES,
     .minimum = 0,
     .maximum = 1e12,
     .preset = "0 B",
     .help = "what is copied to the GPU for each sample; 0: tokens and targets of 8 bytes, where samples have a cost"},
    {FIELD(pin_memory), .type = DTS_FIELD_BOOL, .preset = "true",
     .help = "batches are copied from pinned memory beside the training; pageable memory is copied twice, and the host "
             "waits for it"},
};
#undef STRUCT

#define SCHEMA(schema_name, table, type, text, other_keys)                                                 \
    {                                                                                                      \
        .name = schema_name, .help = text, .fields = table, .field_count = sizeof table / sizeof table[0], \
        .struct_size = sizeof(type), .hints = other_keys                                                   \
    }

const dts_schema dts_training_schema =
    SCHEMA("training", training_fields, dts_training, "the training job", dts_training_hints);
const dts_schema dts_parallelism_schema = SCHEMA("parallelism", parallelism_fields, dts_parallelism,
                                                 "how the job is laid over the GPUs", dts_parallelism_hints);
const dts_schema dts_offload_schema =
    SCHEMA("offload", offload_fields, dts_offload, "what rests in host memory or on NVMe between uses", NULL);
const dts_schema dts_input_schema = SCHEMA("input", input_fields, dts_input, "data loading", NULL);
