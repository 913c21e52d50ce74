/* Blocks that have been simulated, by key.
 *
 * A block depends on the model, the GPU, the links, the stack, the precision … : all that a scenario says except how
 * many replicas, stages and microbatches there are. The environment is that, written out as bytes by a walk over the
 * schemas of what the job was bound from, and compared as bytes; so nobody can forget to name a new key here. What is
 * left out is named below, and what the plan derives from it and passes depend on is added. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "hardware/timings.h"
#include "plan/lower/builder.h"

enum { FIRST_SLOTS = 1024, DEFAULT_BYTES = 64 << 20 };

typedef struct entry {
    dts_block_key key;
    dts_block *block; /* NULL: cannot be one task */
    bool used;
} entry;

typedef struct environment {
    const unsigned char *bytes;
    size_t size;
} environment;

struct dts_block_cache {
    dts_arena *arena; /* blocks and environments */
    entry *slots;     /* open addressing; slot_count is a power of two, at most half used */
    size_t slot_count, used;
    environment *environments;
    size_t environment_count, environment_capacity;
    size_t most_B;
};

dts_block_cache *dts_block_cache_new(size_t most_B) {
    dts_block_cache *cache = calloc(1, sizeof *cache);
    if (cache == NULL) {
        return NULL;
    }
    cache->most_B = most_B == 0 ? DEFAULT_BYTES : most_B;
    cache->slot_count = FIRST_SLOTS;
    cache->slots = calloc(cache->slot_count, sizeof *cache->slots);
    cache->arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    if (cache->slots == NULL || cache->arena == NULL) {
        dts_block_cache_free(cache);
        return NULL;
    }
    return cache;
}

void dts_block_cache_free(dts_block_cache *cache) {
    if (cache != NULL) {
        dts_arena_free(cache->arena);
        free(cache->slots);
        free(cache->environments);
        free(cache);
    }
}

static size_t size_of(const dts_block_cache *cache) {
    return dts_arena_used(cache->arena) + cache->slot_count * sizeof *cache->slots;
}

/* Forgets everything once there is too much. */
static dts_status start_afresh(dts_block_cache *cache) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    entry *slots = calloc(FIRST_SLOTS, sizeof *slots);
    if (arena == NULL || slots == NULL) {
        dts_arena_free(arena);
        free(slots);
        return DTS_NOMEM;
    }
    dts_arena_free(cache->arena);
    free(cache->slots);
    cache->arena = arena;
    cache->slots = slots;
    cache->slot_count = FIRST_SLOTS;
    cache->used = 0;
    cache->environment_count = 0;
    return DTS_OK;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/* FNV-1a over eight bytes at a time, and a last stir (Steele et al. 2014): equal keys are compared in full anyway. */
static size_t hash(const void *bytes, size_t size) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i + 8 <= size; i += 8) {
        uint64_t word;
        memcpy(&word, (const unsigned char *)bytes + i, sizeof word);
        h = (h ^ word) * UINT64_C(0x100000001b3);
        h ^= h >> 29;
    }
    h = (h ^ (h >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    return (size_t)(h ^ (h >> 31));
}

_Static_assert(sizeof(dts_block_key) == 40, "keys are compared as bytes: no padding, whole words");

static entry *slot_of(entry *slots, size_t count, const dts_block_key *key) {
    size_t i = hash(key, sizeof *key) & (count - 1);
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison,cert-exp42-c,cert-flp37-c): no padding, asserted above */
    while (slots[i].used && memcmp(&slots[i].key, key, sizeof *key) != 0) {
        i = (i + 1) & (count - 1);
    }
    return &slots[i];
}

const dts_block *dts_block_cache_get(dts_block_cache *cache, const dts_block_key *key, bool *known) {
    const entry *found = slot_of(cache->slots, cache->slot_count, key);
    *known = found->used;
    return found->used ? found->block : NULL;
}

static dts_status make_room(dts_block_cache *cache) {
    if (2 * (cache->used + 1) <= cache->slot_count) {
        return DTS_OK;
    }
    size_t count = 2 * cache->slot_count;
    entry *slots = calloc(count, sizeof *slots);
    if (slots == NULL) {
        return DTS_NOMEM;
    }
    for (size_t i = 0; i < cache->slot_count; i++) {
        if (cache->slots[i].used) {
            *slot_of(slots, count, &cache->slots[i].key) = cache->slots[i];
        }
    }
    free(cache->slots);
    cache->slots = slots;
    cache->slot_count = count;
    return DTS_OK;
}

/* A copy with everything it points to. */
static dts_block *copy_block(dts_block_cache *cache, const dts_block *block) {
    dts_block *copy = dts_arena_alloc(cache->arena, sizeof *copy);
    dts_block_row *rows = dts_arena_array(cache->arena, block->row_count, sizeof *rows);
    if (copy == NULL || rows == NULL) {
        return NULL;
    }
    *copy = *block;
    if (block->row_count > 0) {
        memcpy(rows, block->rows, block->row_count * sizeof *rows);
    }
    copy->rows = rows;
    if (block->peak_name != NULL && (copy->peak_name = dts_arena_strdup(cache->arena, block->peak_name)) == NULL) {
        return NULL;
    }
    if (block->trailing > 0 && (copy->trailing_name = dts_arena_strdup(cache->arena, block->trailing_name)) == NULL) {
        return NULL;
    }
    return copy;
}

dts_status dts_block_cache_put(dts_block_cache *cache, const dts_block_key *key, const dts_block *block,
                               const dts_block **kept) {
    *kept = NULL;
    dts_status status = make_room(cache);
    dts_block *copy = status == DTS_OK && block != NULL ? copy_block(cache, block) : NULL;
    if (status != DTS_OK || (block != NULL && copy == NULL)) {
        return DTS_NOMEM;
    }
    *slot_of(cache->slots, cache->slot_count, key) = (entry){.key = *key, .block = copy, .used = true};
    cache->used++;
    *kept = copy;
    return DTS_OK;
}

/* ---- environments ------------------------------------------------------------------------------------------------ */

/* What was written so far. */
typedef struct bytes {
    unsigned char *items;
    size_t count, capacity;
    bool failed;
} bytes;

static void put(bytes *to, const void *from, size_t size) {
    unsigned char *items = dts_array_room(to->items, &to->capacity, to->count + size, 1);
    if (items == NULL) {
        to->failed = true;
        return;
    }
    to->items = items;
    if (size > 0) {
        memcpy(to->items + to->count, from, size);
        to->count += size;
    }
}

static void put_struct(bytes *to, const dts_schema *schema, const void *bound, const char *const *without);

static void put_string(bytes *to, const char *text) {
    put(to, text == NULL ? "" : text, text == NULL ? 1 : strlen(text) + 1);
}

static void put_list(bytes *to, const dts_field *field, const dts_list *list) {
    put(to, &list->count, sizeof list->count);
    if (field->sub == NULL && field->element_type == DTS_FIELD_STRING) {
        for (size_t i = 0; i < list->count; i++) {
            put_string(to, ((const char *const *)list->items)[i]);
        }
        return;
    }
    if (field->sub == NULL) {
        put(to, list->items, list->count * dts_scalar_size(field->element_type));
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        put_struct(to, field->sub, (const unsigned char *)list->items + i * field->sub->struct_size, NULL);
    }
}

static void put_field(bytes *to, const dts_field *field, const void *value) {
    switch (field->type) {
        case DTS_FIELD_STRING:
            put_string(to, *(const char *const *)value);
            break;
        case DTS_FIELD_MAP:
        case DTS_FIELD_PROFILE:
            put_struct(to, field->sub, value, NULL);
            break;
        case DTS_FIELD_LIST:
            put_list(to, field, value);
            break;
        case DTS_FIELD_BOOL:
        case DTS_FIELD_INT:
        case DTS_FIELD_QUANTITY:
        case DTS_FIELD_ENUM:
            put(to, value, dts_scalar_size(field->type));
            break;
        case DTS_FIELD_CUSTOM: /* the caller's */
            break;
    }
}

/* All fields of a bound struct but those of these names. */
static void put_struct(bytes *to, const dts_schema *schema, const void *bound, const char *const *without) {
    for (size_t i = 0; i < schema->field_count; i++) {
        const dts_field *field = &schema->fields[i];
        if (dts_name_index(field->key, without) < 0) {
            put_field(to, field, (const unsigned char *)bound + field->offset);
        }
    }
}

/* What was measured is in its file. */
static void put_path(bytes *to, const dts_timings *timings) {
    const char *path = timings == NULL ? "" : timings->path;
    put(to, path, strlen(path) + 1);
}

static void put_environment(bytes *to, const dts_builder *b) {
    /* how many there are of what a block is one of */
    static const char *const of_cluster[] = {"name", "nodes", NULL};
    static const char *const of_training[] = {"global_batch", NULL};
    static const char *const of_parallelism[] = {"data",      "pipeline", "virtual_stages", "schedule",
                                                 "partition", "order",    "shard_group",    NULL};
    const dts_plan *plan = b->plan;
    const dts_job *job = &plan->job;
    put_struct(to, &dts_model_schema, job->model, NULL);
    put_struct(to, &dts_cluster_schema, job->cluster, of_cluster);
    put_path(to, job->cluster->gpu.timings);
    put_path(to, job->cluster->timings);
    put_struct(to, &dts_stack_schema, job->stack, NULL);
    put_struct(to, &dts_training_schema, job->training, of_training);
    const int64_t recompute[] = {job->training->recompute.kind, job->training->recompute.layers,
                                 job->training->recompute.modules};
    put(to, recompute, sizeof recompute);
    const dts_adapters *adapters = &job->training->adapters;
    const int64_t adaptation[] = {
        adapters->rank,    adapters->targets,          adapters->base, adapters->double_quantisation,
        adapters->dropout, adapters->dropout_position, adapters->fp32};
    put(to, adaptation, sizeof adaptation);
    put_struct(to, &dts_parallelism_schema, job->parallelism, of_parallelism);
    put_struct(to, &dts_offload_schema, job->offload, NULL);
    const double derived[] = {(double)plan->tensor,
                              plan->async_tensor,
                              (double)plan->expert,
                              (double)plan->expert_tensor,
                              (double)plan->context,
                              plan->expert_crossing,
                              plan->expert_rows,
                              plan->replicas > 1,
                              plan->shards > 1,
                              plan->expert_replicas > 1,
                              plan->pipeline > 1,
                              b->flow_network,
                              (double)plan->gpus_per_node,
                              b->slowest};
    put(to, derived, sizeof derived);
    double groups[DTS_GROUP_COUNT][3];
    put(to, groups, dts_build_inner_groups(plan, groups) * sizeof groups[0]);
}

/* The number of an environment that is known, or a new one. */
static dts_status number_of(dts_block_cache *cache, const bytes *what, uint32_t *out) {
    for (size_t i = 0; i < cache->environment_count; i++) {
        const environment *known = &cache->environments[i];
        if (known->size == what->count && memcmp(known->bytes, what->items, what->count) == 0) {
            *out = (uint32_t)i;
            return DTS_OK;
        }
    }
    environment *more =
        dts_array_room(cache->environments, &cache->environment_capacity, cache->environment_count + 1, sizeof *more);
    if (more == NULL) {
        return DTS_NOMEM;
    }
    cache->environments = more;
    unsigned char *copy = dts_arena_alloc(cache->arena, what->count);
    if (copy == NULL) {
        return DTS_NOMEM;
    }
    memcpy(copy, what->items, what->count);
    *out = (uint32_t)cache->environment_count;
    cache->environments[cache->environment_count++] = (environment){copy, what->count};
    return DTS_OK;
}

dts_status dts_block_environment(dts_block_cache *cache, dts_builder *b) {
    if (size_of(cache) > cache->most_B && start_afresh(cache) != DTS_OK) {
        return dts_diag_nomem(b->diag);
    }
    bytes now = {0};
    put_environment(&now, b);
    dts_status status = now.failed ? DTS_NOMEM : number_of(cache, &now, &b->environment);
    free(now.items);
    return status == DTS_OK ? DTS_OK : dts_diag_nomem(b->diag);
}
