/* Local moves on plans whose layers differ, judged by simulation: what the closed forms of mix.c leave out decides
 * between plans that are close.
 *
 * A plan is runs of equal layers. A move gives a whole run, its first or its last layer another of the choices; layers
 * are alike, so that which of a run's inner layers changes makes no difference but for exchanges, of which more runs
 * only make more. The best neighbour is taken as long as it is better than what it comes from (steepest descent), from
 * the best finding of each of the best layouts in turn: valleys of one layout often end at the same place. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "search/mix.h"

enum { STARTS = 4 };

typedef struct moves {
    dts_search_context *c;
    size_t limit;
    dts_diag *diag;
    dts_candidate base; /* without choices of layers */
    int64_t layers;
    dts_layer_choice choices[DTS_MIX_CHOICES];
    size_t count;
    uint8_t *of_layer, *changed; /* [layers] index of the choice */
    dts_ranked *made;
    size_t made_count, made_capacity;
} moves;

static bool same(const dts_layer_choice *a, const dts_layer_choice *b) {
    return a->tensor == b->tensor && a->sharding == b->sharding && a->recompute == b->recompute;
}

/* The choice of every layer; false: one is not among those that are tried. */
static bool expand(moves *m, const dts_candidate *from) {
    memset(m->of_layer, 0, (size_t)m->layers);
    for (size_t i = 0; from->layers != NULL && i < from->layers->count; i++) {
        const dts_layer_choice *choice = &from->layers->items[i];
        size_t k = 0;
        while (k < m->count && !same(choice, &m->choices[k])) {
            k++;
        }
        if (k == m->count) {
            return false;
        }
        memset(m->of_layer + choice->layers.first, (int)k, (size_t)(choice->layers.last - choice->layers.first + 1));
    }
    return true;
}

static dts_status add(moves *m) {
    dts_arena *arena = m->c->search->arena;
    dts_layer_choice *items = dts_arena_array(arena, (size_t)m->layers, sizeof *items);
    dts_layer_list *list = dts_arena_alloc(arena, sizeof *list);
    if (items == NULL || list == NULL) {
        return DTS_NOMEM;
    }
    *list = (dts_layer_list){.items = items};
    for (int64_t layer = 0; layer < m->layers; layer++) {
        if (layer > 0 && m->changed[layer] == m->changed[layer - 1] && m->changed[layer] > 0) {
            items[list->count - 1].layers.last = layer;
        } else if (m->changed[layer] > 0) {
            items[list->count] = m->choices[m->changed[layer]];
            items[list->count++].layers = (dts_layer_range){layer, layer};
        }
    }
    dts_candidate candidate = m->base;
    candidate.layers = list->count > 0 ? list : NULL;
    dts_ranked *made = dts_array_room(m->made, &m->made_capacity, m->made_count + 1, sizeof *made);
    if (made == NULL) {
        return DTS_NOMEM;
    }
    m->made = made;
    if (dts_candidate_legal(&candidate, m->c->request->base)) {
        m->made[m->made_count++] = (dts_ranked){.candidate = candidate};
    }
    return DTS_OK;
}

/* All moves of one run. */
static dts_status change_run(moves *m, int64_t first, int64_t last) {
    const int64_t spans[][2] = {{first, last}, {first, first}, {last, last}};
    dts_status status = DTS_OK;
    for (size_t k = 0; k < m->count && status == DTS_OK; k++) {
        for (size_t s = 0; s < (first == last ? 1 : 3) && k != m->of_layer[first] && status == DTS_OK; s++) {
            memcpy(m->changed, m->of_layer, (size_t)m->layers);
            memset(m->changed + spans[s][0], (int)k, (size_t)(spans[s][1] - spans[s][0] + 1));
            status = add(m);
        }
    }
    return status;
}

static dts_status list_moves(moves *m, const dts_candidate *from) {
    m->made_count = 0;
    dts_status status = DTS_OK;
    for (int64_t first = 0; expand(m, from) && first < m->layers && status == DTS_OK;) {
        int64_t last = first;
        while (last + 1 < m->layers && m->of_layer[last + 1] == m->of_layer[first]) {
            last++;
        }
        status = change_run(m, first, last);
        first = last + 1;
    }
    return status;
}

/* The best of the findings among these. */
static const dts_finding *best_of(const dts_search_context *c, const dts_ranked *made, size_t count) {
    const dts_finding *best = NULL;
    for (size_t i = 0; i < count; i++) {
        long at = dts_layouts_find(c, &made[i].candidate);
        const dts_finding *f = at < 0 ? NULL : &c->search->findings[at];
        if (f != NULL && (best == NULL || dts_findings_compare(c->request->objective, f, best) < 0)) {
            best = f;
        }
    }
    return best;
}

/* From one finding to the bottom of its valley. */
static dts_status descend(moves *m, dts_finding from) {
    dts_search_context *c = m->c;
    dts_status status = DTS_OK;
    for (bool better = true; better && status == DTS_OK && c->search->count < m->limit && !dts_layouts_stopped(c);) {
        m->base = from.candidate;
        m->base.layers = NULL;
        m->count = dts_mix_choices(c, &m->base, m->choices);
        status = list_moves(m, &from.candidate);
        size_t left = m->limit - c->search->count;
        size_t count = m->made_count < left ? m->made_count : left;
        status = status == DTS_OK ? dts_layouts_simulate(c, m->made, count, m->diag) : dts_diag_nomem(m->diag);
        const dts_finding *best = best_of(c, m->made, count);
        better = best != NULL && dts_findings_compare(c->request->objective, best, &from) < 0;
        from = better ? *best : from;
    }
    return status;
}

/* Is it the same layout, whatever its layers do otherwise? */
static bool same_layout(const dts_candidate *a, const dts_candidate *b) {
    dts_candidate x = *a, y = *b;
    x.layers = NULL;
    y.layers = NULL;
    return dts_candidate_compare(&x, &y) == 0;
}

/* A finding takes its place among the starts, best first, unless its layout has a better one. */
static void add_start(const dts_search_context *c, const dts_finding *f, dts_finding *starts, size_t *count) {
    size_t at = 0;
    while (at < *count && dts_findings_compare(c->request->objective, f, &starts[at]) >= 0) {
        if (same_layout(&starts[at++].candidate, &f->candidate)) {
            return;
        }
    }
    size_t gone = at; /* the one that makes room: of the same layout, or the last */
    while (gone < *count && !same_layout(&starts[gone].candidate, &f->candidate)) {
        gone++;
    }
    if (gone == *count && *count < STARTS) {
        (*count)++;
    }
    gone = gone < STARTS ? gone : STARTS - 1;
    if (at < STARTS) {
        memmove(&starts[at + 1], &starts[at], (gone - at) * sizeof *starts);
        starts[at] = *f;
    }
}

dts_status dts_mix_move(dts_search_context *c, size_t limit, dts_diag *diag) {
    moves m = {.c = c, .limit = limit, .diag = diag, .layers = c->request->base->model.layers};
    dts_finding starts[STARTS];
    size_t count = 0;
    m.of_layer = calloc((size_t)m.layers + 1, 1);
    m.changed = calloc((size_t)m.layers + 1, 1);
    dts_status status = m.of_layer == NULL || m.changed == NULL ? dts_diag_nomem(diag) : DTS_OK;
    for (size_t i = 0; i < c->search->count && status == DTS_OK; i++) {
        const dts_finding *f = &c->search->findings[i];
        if (f->outcome.kind == DTS_OUTCOME_SIMULATED && dts_mix_may(c, &f->candidate)) {
            add_start(c, f, starts, &count);
        }
    }
    for (size_t i = 0; i < count && status == DTS_OK; i++) {
        status = descend(&m, starts[i]);
    }
    free(m.of_layer);
    free(m.changed);
    free(m.made);
    return status;
}
