/* A cache of blocks changes no byte, whatever changes between two runs that share it: every value that a scenario binds
 * is changed by itself, found through the schemas, so that a new key is covered the day it is added. What a block
 * depends on and its key does not hold (sim/plan/lower/block_cache.c) would show as the old block's times in the new
 * run. Where DTSIM_PROPERTY_RUNS asks for few, as under sanitizers, a third of the changes is tried. */
#include <stdlib.h>

#include "report/report.h"
#include "simulate.h"

typedef struct trial {
    dts_scenario_values *values;
    dts_block_cache *cache; /* holds the blocks of the scenario as it was */
    char *before;           /* its result */
    size_t every;           /* one of so many changes is tried */
    size_t tried, legal, matter;
} trial;

static char *result_of(const dts_scenario_values *values, dts_block_cache *cache) {
    dts_run_options options = {.blocks = cache};
    dts_diag *diag = dts_diag_new();
    dts_result *r = NULL;
    char *copy = NULL;
    if (dts_run_values(values, &options, &r, diag) == DTS_OK) {
        dts_text text = {0};
        dts_report_options how = {0};
        assert_int_equal(dts_report_json(r, &how, &text), DTS_OK);
        copy = strdup(dts_text_string(&text));
        dts_text_free(&text);
        dts_result_free(r);
    }
    dts_diag_free(diag);
    return copy;
}

static void try(trial *t, const char *key) {
    if (t->tried++ % t->every != 0) {
        return;
    }
    char *fresh = result_of(t->values, NULL);
    char *cached = result_of(t->values, t->cache);
    assert_int_equal(fresh == NULL, cached == NULL);
    if (fresh != NULL) {
        t->legal++;
        t->matter += strcmp(fresh, t->before) != 0;
        if (strcmp(fresh, cached) != 0) {
            print_error("the key of blocks does not know \"%s\"\n", key);
        }
        assert_string_equal(fresh, cached);
    }
    free(fresh);
    free(cached);
}

static bool within(const dts_field *field, double value) {
    bool bounded = field->minimum != 0 || field->maximum != 0;
    bool above = bounded && field->maximum >= field->minimum && value > field->maximum;
    return !above && (!bounded || value >= field->minimum);
}

static void try_number(trial *t, const dts_field *field, dts_field_type type, void *value) {
    int64_t *whole = value;
    double *real = value;
    if (type == DTS_FIELD_INT) {
        int64_t was = *whole;
        const int64_t others[] = {was + 1, 2 * was, was / 2};
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
            *whole = others[i];
            if (*whole != was && within(field, (double)*whole)) {
                try(t, field->key);
            }
        }
        *whole = was;
        return;
    }
    double was = *real;
    *real = was == 0 ? 1 : was * 0.75;
    if (within(field, *real)) {
        try(t, field->key);
    }
    *real = was;
}

static void try_choice(trial *t, const dts_field *field, int *value) {
    int was = *value;
    for (int i = 0; field->names[i] != NULL; i++) {
        *value = i;
        if (i != was) {
            try(t, field->key);
        }
    }
    *value = was;
}

static void try_struct(trial *t, const dts_schema *schema, void *bound);

static void try_list(trial *t, const dts_field *field, const dts_list *list) {
    for (size_t i = 0; field->sub != NULL && i < list->count; i++) {
        try_struct(t, field->sub, (unsigned char *)list->items + i * field->sub->struct_size);
    }
    for (size_t i = 0; field->element_type == DTS_FIELD_QUANTITY && i < list->count; i++) {
        try_number(t, field, DTS_FIELD_QUANTITY, (double *)list->items + i);
    }
}

static void try_field(trial *t, const dts_field *field, void *value) {
    bool *flag = value;
    switch (field->type) {
        case DTS_FIELD_BOOL:
            *flag = !*flag;
            try(t, field->key);
            *flag = !*flag;
            break;
        case DTS_FIELD_INT:
        case DTS_FIELD_QUANTITY:
            try_number(t, field, field->type, value);
            break;
        case DTS_FIELD_ENUM:
            try_choice(t, field, value);
            break;
        case DTS_FIELD_MAP:
        case DTS_FIELD_PROFILE:
            try_struct(t, field->sub, value);
            break;
        case DTS_FIELD_LIST:
            try_list(t, field, value);
            break;
        case DTS_FIELD_STRING: /* names */
        case DTS_FIELD_CUSTOM: /* try_unions */
            break;
    }
}

static void try_struct(trial *t, const dts_schema *schema, void *bound) {
    for (size_t i = 0; i < schema->field_count; i++) {
        const dts_field *field = &schema->fields[i];
        try_field(t, field, (unsigned char *)bound + field->offset);
    }
}

/* What single fields cannot say. */
static void try_unions(trial *t) {
    dts_recompute *recompute = &t->values->training.recompute;
    dts_recompute was = *recompute;
    for (int kind = DTS_RECOMPUTE_NONE; kind <= DTS_RECOMPUTE_FIRST; kind++) {
        for (int64_t layers = 1; layers <= 2; layers++) {
            *recompute = (dts_recompute){.kind = kind, .layers = layers};
            try(t, "recompute");
        }
    }
    for (int64_t modules = 1; modules < 1 << DTS_MODULE_COUNT; modules *= 2) {
        *recompute = (dts_recompute){.kind = DTS_RECOMPUTE_SELECTIVE, .modules = modules};
        try(t, "recompute");
    }
    *recompute = was;
    static const char *const schedules[] = {"gpipe", "1f1b", "zb-h1", "interleaved-1f1b"};
    const char *name = t->values->parallelism.schedule.name;
    for (size_t i = 0; t->values->parallelism.pipeline > 1 && i < sizeof schedules / sizeof schedules[0]; i++) {
        t->values->parallelism.schedule.name = schedules[i];
        try(t, "schedule");
    }
    t->values->parallelism.schedule.name = name;
}

/* Small, and between them with a tensor-parallel group, a pipeline, experts, shards and latent attention. */
static const char *const bases[] = {
    "model: {profile: gpt, layers: 4, hidden: 256, heads: 8, vocab: 1000, ffn_hidden: 768}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 2}\n"
    "stack: megatron-lm\n"
    "training: {global_batch: 16, micro_batch: 2, sequence_length: 128, precision: fp16, optimizer: adamw}\n"
    "parallelism: {tensor: 4, pipeline: 2, schedule: 1f1b, data_parallel: ddp}\n",
    "model: {profile: llama, layers: 2, hidden: 256, heads: 8, vocab: 1000, ffn_hidden: 768}\n"
    "cluster: {profile: gcp-a2-highgpu-8g, nodes: 2, gpus_per_node: 4}\n"
    "stack: pytorch-2\n"
    "training: {global_batch: 32, micro_batch: 2, sequence_length: 128, precision: bf16, recompute: full}\n"
    "parallelism: {data_parallel: fsdp}\n",
    "model: {profile: llama, layers: 4, hidden: 256, heads: 8, vocab: 1000, ffn_hidden: 768, experts: 8,\n"
    "  experts_per_token: 2, expert_ffn_hidden: 128, moe_every: 2, capacity_factor: 1.25, kv_lora_rank: 64,\n"
    "  qk_nope_head_dim: 32, qk_rope_head_dim: 16, v_head_dim: 32}\n"
    "cluster: {profile: dgx-h100, nodes: 2}\n"
    "stack: megatron-core\n"
    "training: {global_batch: 64, micro_batch: 1, sequence_length: 128, precision: fp8, optimizer: adamw}\n"
    "parallelism: {tensor: 2, sequence: true, pipeline: 2, schedule: 1f1b, expert: 8, data_parallel: zero1}\n",
};

static void every_value_is_in_the_key(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++) {
        const char *roots[] = {"."};
        dts_profile_paths profiles = {.roots = roots, .count = 1};
        /* blocks are made of layers', which are kept too, and are layers' where FSDP gathers them */
        dts_override detail = {.key = "fidelity.detail", .value = "block", .place = {.file = "test"}};
        dts_diag *diag = dts_diag_new();
        dts_scenario *scenario = NULL;
        const char *text = bases[i];
        assert_int_equal(dts_scenario_parse(text, strlen(text), "base", &detail, 1, &profiles, &scenario, diag),
                         DTS_OK);
        dts_scenario_values values = *dts_scenario_get(scenario);
        trial t = {.values = &values, .cache = dts_block_cache_new(0), .every = asked_for_few() ? 3 : 1};
        assert_non_null(t.cache);
        t.before = result_of(&values, t.cache);
        assert_non_null(t.before);
        try_struct(&t, &dts_scenario_schema, &values);
        try_unions(&t);
        print_message("%zu changes, %zu of them legal, %zu change the result\n", t.tried, t.legal, t.matter);
        assert_true(t.matter > 50 / t.every);
        free(t.before);
        dts_block_cache_free(t.cache);
        dts_scenario_free(scenario);
        dts_diag_free(diag);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_value_is_in_the_key)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
