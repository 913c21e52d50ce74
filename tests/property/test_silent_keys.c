/* Keys that do nothing. Every key of a scenario is given another legal value, found through the schemas, so that a new
 * key is covered the day it is added. Of each key some value changes time or memory in some base, or draws a warning:
 * a key that never does is dead. And what a run warns does nothing, does nothing: without it every number is the same.
 *
 * tests/property/silent_keys.txt lists the bases in which keys of plans change nothing and are not warned about: KEY,
 * and the numbers of those bases. Each is a silence that nobody has looked into yet, so the list may only become
 * shorter: a key that is silent where it is not listed needs a rule in sim/run/unused_keys.c, or an effect. An ordinary
 * run looks for new silences in a quarter of the bases for each key, or, where DTSIM_PROPERTY_RUNS asks for few, as
 * under sanitizers, in one of them, and at a third of the keys; DTSIM_THOROUGH=1 tries all values in all bases, a
 * minute and a half, and fails for lines that are out of date, too. With DTSIM_UPDATE=1 as well it writes the list
 * anew: read the difference. A new base goes to the end, as the others are known by their numbers. */
#include <stdlib.h>

#include "base/quantity.h"
#include "simulate.h"

enum { LONGEST_KEY = 120, MOST_KEYS = 1000, MOST_VALUES = 16, DIGEST = 4096 };

static const char list_path[] = "tests/property/silent_keys.txt";

/* Small, and between them with everything that a key may be about. */
static const char *const bases[] = {
    /* experts in two directions, 8 bits, latent attention */
    "extends: ./scenarios/experts/deepseek-v3-h800.yaml\n"
    "model: {layers: 4, first_dense_layers: 1, load_imbalance: 1.2}\n"
    "stack: {profile: hai-llm, tokens_cross_once: false, device_dispatch_domain: 2}\n"
    "cluster: {nodes: 8}\n"
    "training: {global_batch: 64, recompute: none}\n"
    "parallelism: {pipeline: 4, expert: 16}\n",
    /* experts, tensor and pipeline parallelism, 8 bits */
    "model: {profile: llama, layers: 8, hidden: 2048, heads: 16, vocab: 32000, ffn_hidden: 4096, experts: 8,\n"
    "  experts_per_token: 2, expert_ffn_hidden: 1024, moe_every: 2, shared_expert_ffn_hidden: 2048}\n"
    "cluster: {profile: dgx-h100, nodes: 2}\n"
    "stack: {profile: megatron-core, dropout: true, fp8: {attention: true}}\n"
    "training: {global_batch: 32, micro_batch: 2, sequence_length: 2048, precision: fp8}\n"
    "parallelism: {tensor: 2, sequence: true, pipeline: 2, schedule: interleaved-1f1b, virtual_stages: 2,\n"
    "  expert: 8, data_parallel: zero1}\n",
    /* windows, sinks, biases of experts, blocks of 8 bits */
    "model: {profile: gpt-oss-20b, layers: 4}\n"
    "cluster: b200-sxm-8\n"
    "stack: megatron-bridge\n"
    "training: {global_batch: 16, micro_batch: 1, sequence_length: 4096, precision: mxfp8}\n"
    "parallelism: {expert: 4, data_parallel: zero1}\n",
    "model: {profile: llama-3-8b, layers: 4}\n"
    "cluster: b200-sxm-8\n"
    "stack: {profile: nemo, ddp: {owns_tensors: true}}\n"
    "training: {global_batch: 16, micro_batch: 1, sequence_length: 4096, precision: nvfp4}\n"
    "parallelism: {tensor: 4, sequence: true, data_parallel: zero1}\n",
    /* tensor parallelism beside FSDP, scales of rows, compiled */
    "model: {profile: llama-3-8b, layers: 4}\n"
    "cluster: {profile: coreweave-hgx-h100, nodes: 2}\n"
    "stack: {profile: torchtitan, compile: true, fp8: {recipe: rowwise}}\n"
    "training: {global_batch: 32, micro_batch: 1, sequence_length: 4096, precision: fp8, recompute: selective}\n"
    "parallelism: {tensor: 8, sequence: true, async_tensor: true, data_parallel: fsdp}\n",
    /* the same in a pipeline, with windows in chunks */
    "model: {profile: llama-3-8b, layers: 8, attention_window: 1024, global_every: 4}\n"
    "cluster: {profile: coreweave-hgx-h100, nodes: 2}\n"
    "stack: {profile: torchtitan, aiter_attention: true}\n"
    "training: {global_batch: 32, micro_batch: 1, sequence_length: 4096, precision: amp-bf16}\n"
    "parallelism: {tensor: 2, sequence: true, pipeline: 4, data_parallel: fsdp, virtual_stages: 2,\n"
    "  schedule: interleaved-1f1b}\n",
    /* FSDP with a ring */
    "model: {profile: llama, layers: 4, hidden: 1024, heads: 8, vocab: 32000, ffn_hidden: 3072}\n"
    "cluster: {profile: gcp-a2-highgpu-8g, nodes: 2, gpus_per_node: 4}\n"
    "stack: pytorch-2\n"
    "training: {global_batch: 32, micro_batch: 2, sequence_length: 4096, precision: amp-bf16, recompute: full}\n"
    "parallelism: {data_parallel: fsdp, context: 2}\n",
    /* eager kernels of all kinds, tf32 beside autocast, data to wait for */
    "model: {profile: gpt, layers: 4, hidden: 1024, heads: 16, vocab: 50000}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 2, jitter: 0.02}\n"
    "stack: {profile: huggingface-eager, separate_qkv: false}\n"
    "training: {global_batch: 32, micro_batch: 1, sequence_length: 1000, precision: amp-fp16, optimizer: muon}\n"
    "input: {sample_cost: 500 ms, workers: 64, prefetch_factor: 1, pin_memory: false}\n",
    "model: {profile: gpt, layers: 4, hidden: 1024, heads: 16, vocab: 50000}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 2}\n"
    "stack: {profile: pytorch-1.11, tf32: false, ddp: {overlap: false}}\n"
    "training: {global_batch: 32, micro_batch: 1, sequence_length: 1000, precision: fp32}\n",
    /* Megatron of 2021 */
    "model: {profile: gpt, layers: 8, hidden: 2048, heads: 16, vocab: 50000}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 4}\n"
    "stack: {profile: megatron-lm-2021, ddp: {bucket: 10 MB, first_bucket: 10 MB}, accumulate_kernel: true,\n"
    "  fp32_gradients: true}\n"
    "training: {global_batch: 32, micro_batch: 2, sequence_length: 2048, precision: fp16}\n"
    "parallelism: {tensor: 4, pipeline: 4, data_parallel: ddp}\n",
    /* an order that measures its passes, a step without a flush */
    "extends: ./scenarios/pipelines/zb-h1.yaml\n"
    "cluster: {nodes: 2}\n"
    "stack: zero-bubble\n"
    "parallelism: {schedule: zb2p-heuristic}\n",
    /* adapters */
    "extends: ./scenarios/fine-tuning/lora-8b.yaml\n"
    "model: {layers: 4}\n"
    "cluster: {gpus_per_node: 8}\n"
    "stack: huggingface-trainer\n"
    "training: {global_batch: 32}\n"
    "parallelism: {data_parallel: zero3}\n",
    /* adapters of joined products, in 8 bits, over more ranks than heads of keys */
    "extends: ./scenarios/fine-tuning/lora-8b.yaml\n"
    "model: {layers: 4, kv_heads: 2}\n"
    "cluster: dgx-h100\n"
    "stack: {profile: nemo, few_kv_heads: gathered}\n"
    "training: {global_batch: 32, micro_batch: 1, precision: fp8, adapters: {lora: {rank: 16, targets: all-linear}}}\n"
    "parallelism: {tensor: 4, sequence: true}\n",
    /* offload */
    "model: {profile: gpt, layers: 4, hidden: 4096, heads: 32, vocab: 50000}\n"
    "cluster: {profile: dgx-2, nodes: 2}\n"
    "stack: deepspeed\n"
    "training: {global_batch: 64, micro_batch: 1, sequence_length: 1024, precision: fp16, optimizer: adam}\n"
    "parallelism: {data_parallel: zero3}\n"
    "offload: {optimizer: nvme, parameters: nvme, activations: cpu}\n",
    "model: {profile: gpt, layers: 4, hidden: 4096, heads: 32, vocab: 50000}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1}\n"
    "stack: {profile: pytorch-2, fsdp: {mixed_precision: false}}\n"
    "training: {global_batch: 64, micro_batch: 1, sequence_length: 1024, precision: tf32, optimizer: adam}\n"
    "parallelism: {data_parallel: fsdp}\n"
    "offload: {optimizer: cpu}\n",
    /* what has no decoder, and what has no backward */
    "model: {profile: bert-large, layers: 4}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 1}\n"
    "stack: nvidia-bert-pytorch\n"
    "training: {global_batch: 64, micro_batch: 4, sequence_length: 512, precision: fp16, optimizer: lamb}\n",
    "extends: ./scenarios/inference/llama-3-70b-decode.yaml\n"
    "model: {layers: 4}\n",
    /* blocks side by side, memory that is nearly full, estimated and replayed */
    "model: {profile: gpt, layers: 16, hidden: 2048, heads: 16, kv_heads: 2, vocab: 50001, rotary: true,\n"
    "  parallel_block: shared_norm, gated_ffn: true}\n"
    "cluster: {profile: dgx-a100-80gb, nodes: 2, gpu: {memory: 11.5 GB}}\n"
    "stack: {profile: olmo-core, few_kv_heads: whole}\n"
    "training: {global_batch: 64, micro_batch: 2, sequence_length: 2048, precision: amp-bf16}\n"
    "parallelism: {tensor: 4, data_parallel: ddp}\n"
    "fidelity: {allocator: estimate, detail: block}\n",
    "model: llama-3-8b\n"
    "cluster: {profile: dgx-h100, nodes: 1}\n"
    "stack: torchtitan\n"
    "training: {global_batch: 8, micro_batch: 1, sequence_length: 7900, precision: bf16, optimizer: adamw}\n"
    "parallelism: {data_parallel: fsdp, shard_group: 8}\n",
    /* one process for a pipeline's stages */
    "extends: ./scenarios/gcp-data-parallel/scaling-pdp.yaml\n"
    "model: {layers: 8}\n",
};

enum { BASES = sizeof bases / sizeof bases[0] };

typedef struct known {
    char key[LONGEST_KEY];
    bool counts, exists;
    bool silent[BASES], listed[BASES];
} known;

typedef struct trial {
    const char *text;
    char before[DIGEST];
    known *known;
    size_t base, known_count, tried, legal, wrong;
    size_t stride; /* a key is looked at in every so-manieth base */
    size_t every;  /* and of a struct's keys every so-manieth */
    bool thorough;
} trial;

static known *find(trial *t, const char *key) {
    for (size_t i = 0; i < t->known_count; i++) {
        if (strcmp(t->known[i].key, key) == 0) {
            return &t->known[i];
        }
    }
    assert_true(t->known_count < MOST_KEYS && strlen(key) < LONGEST_KEY);
    known *k = &t->known[t->known_count++];
    memcpy(k->key, key, strlen(key) + 1);
    return k;
}

/* Numbers that tests compare with those of the model. */
static bool is_for_tests(const char *key) {
    return strstr(key, ".expected_") != NULL;
}

/* What hints and searches call a plan, and what launches it, which are no numbers of a run. */
static bool is_a_word(const char *key) {
    return strcmp(key, "stack.fsdp.called") == 0 || strcmp(key, "stack.launcher") == 0 ||
           strcmp(key, "stack.device_dispatcher") == 0;
}

/* A key of how something is trained: rates of machines and shapes of models are looked at as a whole only. */
static bool is_of_plan(const char *key) {
    static const char *const maps[] = {"stack.", "parallelism.", "training.", "offload.", "input."};
    bool is = false;
    for (size_t i = 0; i < sizeof maps / sizeof maps[0]; i++) {
        is = is || strncmp(key, maps[i], strlen(maps[i])) == 0;
    }
    return is;
}

static void read_list(trial *t) {
    FILE *file = fopen(list_path, "r");
    assert_non_null(file);
    char line[LONGEST_KEY + 4 * BASES];
    while (fgets(line, sizeof line, file) != NULL) {
        char *at = line + strcspn(line, " \n");
        *at = '\0';
        known *k = find(t, line);
        for (at++; *at != '\0';) {
            char *end = at;
            const unsigned long base = strtoul(at, &end, 10);
            assert_true(end != at && base < BASES);
            k->listed[base] = true;
            at = end + strspn(end, " \n");
        }
    }
    fclose(file);
}

static int by_key(const void *a, const void *b) {
    return strcmp(((const known *)a)->key, ((const known *)b)->key);
}

static void write_list(trial *t) {
    FILE *file = fopen(list_path, "w");
    assert_non_null(file);
    qsort(t->known, t->known_count, sizeof *t->known, by_key);
    for (size_t i = 0; i < t->known_count; i++) {
        const char *before = t->known[i].key;
        for (size_t b = 0; b < BASES; b++) {
            if (t->known[i].silent[b]) {
                fprintf(file, "%s %zu", before, b);
                before = "";
            }
        }
        fputs(before[0] == '\0' ? "\n" : "", file);
    }
    fclose(file);
}

/* How many silences differ from those of the list. */
static size_t compare_lists(const trial *t) {
    size_t differ = 0;
    for (size_t i = 0; i < t->known_count; i++) {
        const known *k = &t->known[i];
        for (size_t b = 0; b < BASES; b++) {
            const bool grown = k->silent[b] && !k->listed[b], stale = t->thorough && k->listed[b] && !k->silent[b];
            if (grown) {
                print_error("%s does nothing in base %zu, and nothing says so: see sim/run/unused_keys.c\n", k->key, b);
            } else if (stale) {
                print_error("%s is not silent in base %zu any more: shorten %s\n", k->key, b, list_path);
            }
            differ += grown || stale;
        }
    }
    return differ;
}

/* All numbers of a result that a user looks at, and what is warned of them. */
static void digest_of(const dts_result *r, char out[DIGEST]) {
    const double numbers[] = {r->iteration_time_s,
                              r->peak_allocated_gib,
                              r->peak_reserved_gib,
                              r->peak_device_gib,
                              r->capacity_gib,
                              r->model_tflops_per_gpu,
                              r->mfu,
                              r->hfu,
                              r->nvme_peak_gib,
                              r->host_peak_gib,
                              r->nvme_capacity_gib,
                              r->host_capacity_gib,
                              r->price_usd_per_hour,
                              r->whole_run.goodput,
                              r->whole_run.mtbf_s,
                              r->whole_run.checkpoint_B,
                              r->whole_run.checkpoint_s,
                              r->whole_run.write_s,
                              r->whole_run.interval_s,
                              r->whole_run.expected_s,
                              r->whole_run.usd,
                              r->time_s.exposed_communication,
                              r->time_s.host_bound,
                              r->time_s.optimizer,
                              r->time_s.bubble,
                              (double)r->simulation.tasks,
                              (double)r->ranks.count};
    size_t at = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        at += (size_t)snprintf(out + at, DIGEST - at, "%.17g ", numbers[i]);
    }
    for (size_t w = 0; w < r->warning_count && at < DIGEST; w++) {
        const bool silent = strstr(r->warnings[w], "nothing here") != NULL;
        at += (size_t)snprintf(out + at, DIGEST - at, "%.60s", silent ? "" : r->warnings[w]);
    }
    for (size_t s = 0; s < r->stage_count && at < DIGEST; s++) {
        at += (size_t)snprintf(out + at, DIGEST - at, "%.17g %.17g ", r->stages[s].peak_allocated_gib,
                               r->stages[s].compute_s);
    }
}

static bool warns(const dts_result *r, const char *key) {
    for (size_t i = 0; i < r->warning_count; i++) {
        const char *said = r->warnings[i], *last = strrchr(key, '.');
        const size_t length = strcspn(said, " ");
        const bool about = strncmp(said, key, length) == 0 && key[length] == '\0';
        if ((about || (last != NULL && strncmp(said, last + 1, length) == 0 && last[1 + length] == '\0')) &&
            strstr(said, "nothing here") != NULL) {
            return true;
        }
    }
    return false;
}

/* Does this value of the key change anything, or is it said that it does not? */
static bool try(trial *t, const char *key, const char *value, bool *legal, bool *warned) {
    static const char *const roots[] = {"."};
    const dts_profile_paths profiles = {.roots = roots, .count = 1};
    const dts_override override = {.key = key, .value = value, .place = {.file = "--set", .origin = DTS_ORIGIN_SET}};
    dts_diag *diag = dts_diag_new();
    dts_scenario *scenario = NULL;
    dts_result *r = NULL;
    bool differs = false;
    t->tried++;
    if (dts_scenario_parse(t->text, strlen(t->text), "base", &override, key == NULL ? 0 : 1, &profiles, &scenario,
                           diag) == DTS_OK &&
        dts_run(scenario, NULL, &r, diag) == DTS_OK) {
        char digest[DIGEST];
        digest_of(r, digest);
        differs = strcmp(digest, t->before) != 0;
        if (key == NULL) {
            strcpy(t->before, digest);
        } else {
            t->legal++;
            *legal = true;
            const bool said = warns(r, key);
            *warned = *warned || said;
            if (differs && said) {
                print_error("%s=%s is said to do nothing, but it changes a number:\n%s", key, value, t->text);
            }
            t->wrong += differs && said;
        }
        dts_result_free(r);
    } else if (key == NULL) {
        assert_ok(DTS_INVALID, diag); /* a base has to run */
    }
    dts_scenario_free(scenario);
    dts_diag_free(diag);
    return differs;
}

static size_t values_of(const dts_field *field, const unsigned char *bound, char values[MOST_VALUES][64]) {
    size_t count = 0;
    const unsigned char *at = bound + field->offset;
    if (field->type == DTS_FIELD_BOOL) {
        snprintf(values[count++], 64, "%s", *(const bool *)at ? "false" : "true");
    } else if (field->type == DTS_FIELD_ENUM) {
        const int was = *(const int *)at;
        for (int i = 0; field->names[i] != NULL && count < MOST_VALUES; i++) {
            if (i != was) {
                snprintf(values[count++], 64, "%s", field->names[i]);
            }
        }
    } else if (field->type == DTS_FIELD_INT) {
        const int64_t was = *(const int64_t *)at, others[] = {2 * was, was + 1, was / 2, was + 64};
        for (size_t i = 0; i < 4; i++) {
            if (others[i] != was) {
                snprintf(values[count++], 64, "%lld", (long long)others[i]);
            }
        }
    } else if (field->type == DTS_FIELD_QUANTITY) {
        const double was = *(const double *)at,
                     others[] = {was == 0 ? 1 : was * 0.5, was == 0 ? 1e9 : was * 2, 0.001, was * 4096};
        for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
            dts_text text = {0};
            dts_quantity_format_exact(others[i], field->dimension, &text);
            snprintf(values[count++], 64, "%s", dts_text_string(&text));
            dts_text_free(&text);
        }
    }
    return count;
}

static void try_key(trial *t, const char *key, char values[MOST_VALUES][64], size_t count, size_t turn) {
    if (turn % t->every != 0) {
        return;
    }
    known *k = find(t, key);
    const bool looks = is_of_plan(key) && !k->listed[t->base] && (turn + t->base) % t->stride == 0;
    bool legal = false, warned = false, differs = false;
    k->exists = true;
    if (k->counts && !looks && !t->thorough) {
        return;
    }
    for (size_t v = 0; v < count && !differs && (t->thorough || !warned); v++) {
        differs = try(t, key, values[v], &legal, &warned);
    }
    k->counts = k->counts || differs || warned;
    k->silent[t->base] = is_of_plan(key) && legal && !differs && !warned;
}

static void try_struct(trial *t, const dts_schema *schema, const unsigned char *bound, const char *prefix) {
    for (size_t i = 0; i < schema->field_count; i++) {
        const dts_field *field = &schema->fields[i];
        char key[LONGEST_KEY];
        snprintf(key, sizeof key, "%s%s%s", prefix, prefix[0] == '\0' ? "" : ".", field->key);
        if (field->type == DTS_FIELD_MAP || field->type == DTS_FIELD_PROFILE) {
            try_struct(t, field->sub, bound + field->offset, key);
            continue;
        }
        char values[MOST_VALUES][64];
        const size_t count = values_of(field, bound, values);
        if (count > 0 && !is_a_word(key)) {
            try_key(t, key, values, count, i);
        }
    }
}

static void every_key_counts_somewhere(void **state) {
    (void)state;
    static known keys[MOST_KEYS];
    trial t = {.known = keys,
               .stride = asked_for_few() ? BASES : 4,
               .every = asked_for_few() ? 3 : 1,
               .thorough = getenv("DTSIM_THOROUGH") != NULL};
    const bool updates = t.thorough && getenv("DTSIM_UPDATE") != NULL;
    if (!updates) {
        read_list(&t);
    }
    for (size_t i = 0; i < BASES; i++) {
        t.base = i;
        t.text = bases[i];
        t.before[0] = '\0';
        bool unused = false;
        assert_true(try(&t, NULL, NULL, &unused, &unused));
        dts_scenario *scenario = parse_text(t.text);
        print_message("base %zu\n", i);
        try_struct(&t, &dts_scenario_schema, (const unsigned char *)dts_scenario_get(scenario), "");
        dts_scenario_free(scenario);
    }
    if (updates) {
        write_list(&t);
    } else {
        assert_int_equal(compare_lists(&t), 0);
    }
    size_t dead = 0;
    for (size_t i = 0; i < t.known_count; i++) {
        if (keys[i].exists && !keys[i].counts && !is_for_tests(keys[i].key)) {
            print_error("%s does nothing anywhere\n", keys[i].key);
            dead++;
        }
    }
    print_message("%zu keys, %zu values, %zu of them legal\n", t.known_count, t.tried, t.legal);
    assert_int_equal(dead, 0);
    assert_int_equal(t.wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_key_counts_somewhere)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
