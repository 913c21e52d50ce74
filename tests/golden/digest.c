/* Digest of results: picks from JSON what the pinned results hold, one line a subject and group, numbers to nine
 * digits.
 *
 *     digest run NAME < RESULT.json          time, shares, memory by category, what was sent, stages
 *     digest validate NAME < TABLE.json      what each row predicts; means of the table
 *     digest search NAME < SEARCH.json       the best plan and its time; of rents each offer's
 *     digest hash FILE…                      the FNV-1a hash of the files' bytes: the number of the physics
 *
 * Counts of events, estimates and lower ranks are left out: they may change while results stay. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names end with NULL; texts are printed as they are, other leaves as numbers. */
static void print_leaves(const cJSON *object, const char *const *names) {
    for (; *names != NULL; names++) {
        const cJSON *leaf = cJSON_GetObjectItemCaseSensitive(object, *names);
        if (cJSON_IsString(leaf)) {
            printf(" %s=\"%s\"", *names, leaf->valuestring);
        } else if (cJSON_IsNumber(leaf)) {
            printf(" %s=%.9g", *names, leaf->valuedouble + 0.0); /* never −0 */
        } else if (cJSON_IsBool(leaf)) {
            printf(" %s=%s", *names, cJSON_IsTrue(leaf) ? "yes" : "no");
        } else {
            printf(" %s=%s", *names, cJSON_IsNull(leaf) ? "null" : "missing");
        }
    }
    putchar('\n');
}

/* Every number of an object, as it stands there. */
static void print_numbers(const char *name, const char *group, const cJSON *object) {
    printf("%s %s", name, group);
    const cJSON *leaf;
    cJSON_ArrayForEach(leaf, object) {
        printf(" %s=%.9g", leaf->string, leaf->valuedouble + 0.0);
    }
    putchar('\n');
}

static void digest_run(const char *name, const cJSON *result) {
    static const char *const figures[] = {"plan", "iteration_time_s", "samples_per_s",     "mfu",
                                          "hfu",  "bubble_fraction",  "aco_ms_per_sample", "exposed_aco_ms_per_sample",
                                          NULL};
    static const char *const memory[] = {
        "fits", "peak_allocated_gib", "peak_reserved_gib", "peak_device_gib", "host_peak_gib", "nvme_peak_gib", NULL};
    static const char *const sent[] = {"kind", "group", "bytes", "count", "total_s", "exposed_s", "awaited_s", NULL};
    static const char *const stage[] = {"layer_count",        "compute_s",         "bubble_fraction",
                                        "peak_allocated_gib", "peak_reserved_gib", NULL};
    printf("%s", name);
    print_leaves(result, figures);
    print_numbers(name, "time_s", cJSON_GetObjectItem(result, "time_s"));
    printf("%s memory", name);
    print_leaves(result, memory);
    print_numbers(name, "memory_gib", cJSON_GetObjectItem(result, "memory_gib"));
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(result, "communication")) {
        printf("%s sends", name);
        print_leaves(item, sent);
    }
    int index = 0;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(result, "stages")) {
        printf("%s stage %d", name, index++);
        print_leaves(item, stage);
    }
}

static void digest_validate(const char *name, const cJSON *result) {
    static const char *const row[] = {"id", "metric", "predicted", NULL};
    const cJSON *item;
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(result, "rows")) {
        printf("%s", name);
        print_leaves(item, row);
    }
    cJSON_ArrayForEach(item, cJSON_GetObjectItem(result, "summary")) {
        print_numbers(name, item->string, item);
    }
}

static void digest_search(const char *name, const cJSON *result) {
    static const char *const plan[] = {"plan", "iteration_time_s", NULL};
    static const char *const strategy[] = {"name", "iteration_time_s", NULL};
    static const char *const offer[] = {"cluster", "nodes", "plan", "iteration_time_s", "usd", NULL};
    const cJSON *plans = cJSON_GetObjectItem(result, "plans");
    const cJSON *strategies = cJSON_GetObjectItem(result, "strategies");
    const cJSON *offers = cJSON_GetObjectItem(result, "offers");
    if (cJSON_GetArraySize(plans) > 0) {
        printf("%s", name);
        print_leaves(cJSON_GetArrayItem(plans, 0), plan);
    } else if (cJSON_GetArraySize(strategies) > 0) {
        printf("%s", name);
        print_leaves(cJSON_GetArrayItem(strategies, 0), strategy);
    } else if (cJSON_GetArraySize(offers) > 0) {
        const cJSON *item;
        cJSON_ArrayForEach(item, offers) {
            printf("%s", name);
            print_leaves(item, offer);
        }
    } else {
        printf("%s nothing\n", name);
    }
}

/* All of standard input; malloc. */
static char *read_input(void) {
    size_t length = 0, room = 1 << 16;
    char *text = malloc(room);
    while (text != NULL) {
        length += fread(text + length, 1, room - length - 1, stdin);
        if (length + 1 < room) {
            text[length] = '\0';
            return text;
        }
        char *larger = realloc(text, room *= 2);
        if (larger == NULL) {
            free(text);
        }
        text = larger;
    }
    return NULL;
}

static int hash_files(int count, char **paths) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < count; i++) {
        FILE *file = fopen(paths[i], "rb");
        if (file == NULL) {
            perror(paths[i]);
            return 1;
        }
        for (int c = getc(file); c != EOF; c = getc(file)) {
            hash = (hash ^ (unsigned)c) * UINT64_C(0x100000001b3);
        }
        fclose(file);
    }
    printf("%016" PRIx64 "\n", hash);
    return 0;
}

int main(int count, char **words) {
    if (count >= 3 && strcmp(words[1], "hash") == 0) {
        return hash_files(count - 2, words + 2);
    }
    static const struct {
        const char *name;
        void (*digest)(const char *name, const cJSON *result);
    } kinds[] = {{"run", digest_run}, {"validate", digest_validate}, {"search", digest_search}};
    char *text = read_input();
    cJSON *result = text == NULL ? NULL : cJSON_Parse(text);
    bool known = false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (count == 3 && result != NULL && strcmp(words[1], kinds[i].name) == 0) {
            kinds[i].digest(words[2], result);
            known = true;
        }
    }
    cJSON_Delete(result);
    free(text);
    return known ? 0 : 2;
}
