#include "report/differences.h"

#include <string.h>

#include "run/explanation.h"

enum { GIVEN, CHOSEN, DETAIL, RANKS };

static const dts_input_row *row_of(const dts_result *result, const char *key) {
    for (size_t i = 0; i < result->explanation->input_count; i++) {
        if (strcmp(result->explanation->inputs[i].key, key) == 0) {
            return &result->explanation->inputs[i];
        }
    }
    return NULL;
}

const char *dts_input_of(const dts_result *result, const char *key) {
    const dts_input_row *row = row_of(result, key);
    return row != NULL ? row->value : NULL;
}

static bool differs(const dts_result *const *results, size_t count, const char *key) {
    const char *first = dts_input_of(results[0], key);
    for (size_t i = 1; i < count; i++) {
        const char *other = dts_input_of(results[i], key);
        if ((first == NULL) != (other == NULL) || (first != NULL && strcmp(first, other) != 0)) {
            return true;
        }
    }
    return false;
}

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

/* Of a machine all below its parts and its name, of a model all but its sizes, which are numbers. */
static bool is_detail(const dts_input_row *row) {
    const char *dot = strchr(row->key, '.');
    const bool part = dot != NULL && (strchr(dot + 1, '.') != NULL || strcmp(dot, ".name") == 0);
    const bool size = strspn(row->value, "0123456789") == strlen(row->value);
    return begins(row->key, "stack.") || (begins(row->key, "cluster.") && part) ||
           (begins(row->key, "model.") && !size);
}

static int rank_of(const dts_result *const *results, size_t count, const char *key) {
    int rank = DETAIL;
    for (size_t i = 0; i < count; i++) {
        const dts_input_row *row = row_of(results[i], key);
        if (row != NULL) {
            const bool given = row->file != NULL && begins(row->file, "--");
            const int here = given ? GIVEN : is_detail(row) ? DETAIL : CHOSEN;
            rank = here < rank ? here : rank;
        }
    }
    return rank;
}

const char *dts_next_difference(const dts_result *const *results, size_t count, dts_difference_cursor *at) {
    for (; at->rank < RANKS; at->rank++, at->result = 0) {
        for (; at->result < count; at->result++, at->index = 0) {
            const dts_explanation *e = results[at->result]->explanation;
            while (at->index < e->input_count) {
                const char *key = e->inputs[at->index++].key;
                bool told = false;
                for (size_t i = 0; i < at->result && !told; i++) {
                    told = row_of(results[i], key) != NULL;
                }
                if (!told && differs(results, count, key) && rank_of(results, count, key) == at->rank) {
                    return key;
                }
            }
        }
    }
    return NULL;
}
