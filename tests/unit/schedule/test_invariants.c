/* One table of invariants over every schedule and a grid of shapes: what is refused is refused with a legal
 * alternative; what is built is complete, unique, free of deadlock, and within its memory. */
#include "unit/schedule/golden.h"

enum { STAGES_TO = 8, MICROBATCHES_TO = 20, CHUNKS_TO = 4 };

typedef struct expectation {
    const char *name;
    double (*peak)(const dts_schedule_shape *shape, int rank);
    bool at_most; /* the peak is an upper bound, not the exact value */
} expectation;

static int smaller(int a, int b) {
    return a < b ? a : b;
}

static double peak_one(const dts_schedule_shape *s, int rank) {
    (void)s, (void)rank;
    return 1;
}

static double peak_all(const dts_schedule_shape *s, int rank) {
    (void)rank;
    return s->microbatches;
}

static double peak_1f1b(const dts_schedule_shape *s, int rank) {
    return smaller(s->microbatches, s->stages - rank);
}

static double peak_eager(const dts_schedule_shape *s, int rank) {
    return smaller(s->microbatches, 2 * (s->stages - rank) - 1);
}

static double interleaved(const dts_schedule_shape *s, int rank, int group, int extra) {
    int chunks = 2 * (s->stages - 1 - rank) + (s->chunks - 1) * group + 1 + extra;
    return smaller(chunks, s->microbatches * s->chunks) / (double)s->chunks;
}

static double peak_interleaved(const dts_schedule_shape *s, int rank) {
    return interleaved(s, rank, s->stages, 0);
}

static double peak_group2p(const dts_schedule_shape *s, int rank) {
    return interleaved(s, rank, 2 * s->stages, 0);
}

static double peak_moe(const dts_schedule_shape *s, int rank) {
    return interleaved(s, rank, s->stages, 1);
}

static double peak_flex(const dts_schedule_shape *s, int rank) {
    int rounds = s->microbatches / s->stages;
    return interleaved(s, rank, s->microbatches / (rounds > 1 ? rounds : 1), 0);
}

static double peak_p(const dts_schedule_shape *s, int rank) {
    (void)rank;
    return smaller(s->microbatches, s->stages);
}

static double peak_h2(const dts_schedule_shape *s, int rank) {
    (void)rank;
    return smaller(s->microbatches, 2 * s->stages - 1);
}

static double peak_zb1p(const dts_schedule_shape *s, int rank) {
    (void)rank;
    int rounds = s->microbatches / s->stages;
    int group = s->microbatches / (rounds > 1 ? rounds : 1);
    return smaller(s->stages + (s->chunks - 1) * group, s->microbatches * s->chunks) / (double)s->chunks;
}

static double peak_dualpipe(const dts_schedule_shape *s, int rank) {
    (void)rank;
    return s->stages + 1;
}

static double peak_dualpipev(const dts_schedule_shape *s, int rank) {
    (void)rank;
    return s->stages + 0.5;
}

static double peak_group(const dts_schedule_shape *s, int rank) {
    int group = (s->stages + 1) / 2;
    int chunks = s->stages - rank + (s->chunks - 1) * group;
    return smaller(chunks, s->microbatches * s->chunks) / (double)s->chunks;
}

static double peak_2p(const dts_schedule_shape *s, int rank) {
    (void)rank;
    return smaller(s->microbatches, 2 * s->stages);
}

static double peak_half(const dts_schedule_shape *s, int rank) {
    (void)rank;
    return smaller(s->microbatches, s->stages / 2 + 1);
}

static double peak_min(const dts_schedule_shape *s, int rank) {
    (void)rank;
    return smaller(s->microbatches, (s->stages + 1) / 3 + 1);
}

static double peak_1f1b_v(const dts_schedule_shape *s, int rank) {
    (void)rank;
    return smaller(s->microbatches, s->stages);
}

static const expectation expectations[] = {
    {"naive", peak_one, false},
    {"gpipe", peak_all, false},
    {"gpipe-lifo", peak_all, false},
    {"1f1b", peak_1f1b, false},
    {"pipedream", peak_1f1b, false},
    {"eager-1f1b", peak_eager, false},
    {"interleaved-1f1b", peak_interleaved, false},
    {"interleaved-1f1b-flex", peak_flex, false},
    {"interleaved-1f1b-group2p", peak_group2p, false},
    {"interleaved-1f1b-moe-overlap", peak_moe, false},
    {"looped-bfs", peak_all, false},
    {"breadth-first-fifo", peak_all, false},
    {"zb-h1", peak_p, false},
    {"zb-h2", peak_h2, false},
    {"zb1p-heuristic", peak_p, true},
    {"zb2p-heuristic", peak_2p, true},
    {"interleaved-zb1p", peak_zb1p, false},
    {"group-interleaved", peak_group, true},
    {"zbv", peak_p, true},
    {"zbv-heuristic", peak_p, true},
    {"v-half", peak_half, true},
    {"v-min", peak_min, true},
    {"1f1b-v", peak_1f1b_v, true},
    {"chimera", peak_p, true},
    {"dualpipe", peak_dualpipe, false},
    {"dualpipev", peak_dualpipev, false},
};

/* Which of F, B, W of (direction, virtual stage, microbatch) have run. */
typedef struct progress {
    const dts_schedule *schedule;
    int virtual_stages, microbatches;
    bool *done[3];
    size_t *next; /* [stages] */
} progress;

static size_t place(const progress *p, int direction, int stage, unsigned microbatch) {
    return ((size_t)direction * (size_t)p->virtual_stages + (size_t)stage) * (size_t)p->microbatches + microbatch;
}

static bool runnable(const progress *p, int rank, const dts_op *op) {
    int direction = p->schedule->layout == DTS_LAYOUT_BIDIR ? op->chunk : 0;
    int stage = dts_virtual_stage(p->schedule->layout, p->schedule->shape.stages, rank, op->chunk);
    switch ((dts_op_kind)op->kind) {
        case DTS_OP_FORWARD:
            return stage == 0 || p->done[0][place(p, direction, stage - 1, op->microbatch)];
        case DTS_OP_BACKWARD:
        case DTS_OP_BACKWARD_INPUT:
            return p->done[0][place(p, direction, stage, op->microbatch)] &&
                   (stage + 1 == p->virtual_stages || p->done[1][place(p, direction, stage + 1, op->microbatch)]);
        case DTS_OP_BACKWARD_WEIGHT:
            return p->done[1][place(p, direction, stage, op->microbatch)];
    }
    return false;
}

static void mark(progress *p, int kind, size_t at) {
    assert_false(p->done[kind][at]); /* unique */
    p->done[kind][at] = true;
}

static void execute(progress *p, int rank, const dts_op *op) {
    int direction = p->schedule->layout == DTS_LAYOUT_BIDIR ? op->chunk : 0;
    int stage = dts_virtual_stage(p->schedule->layout, p->schedule->shape.stages, rank, op->chunk);
    int owner, chunk;
    dts_virtual_stage_owner(p->schedule->layout, p->schedule->shape.stages, stage, direction, &owner, &chunk);
    assert_int_equal(owner, rank);
    assert_int_equal(chunk, op->chunk);
    assert_true(op->microbatch < (unsigned)p->microbatches);
    size_t at = place(p, direction, stage, op->microbatch);
    if (op->kind == DTS_OP_BACKWARD) {
        mark(p, 1, at);
        mark(p, 2, at);
    } else {
        mark(p, op->kind == DTS_OP_FORWARD ? 0 : op->kind == DTS_OP_BACKWARD_INPUT ? 1 : 2, at);
    }
}

/* Runs the blocks of one rank as far as their inputs are there; true when any ran. */
static bool advance(progress *p, int rank) {
    const dts_op *ops = p->schedule->ops[rank];
    bool any = false;
    while (p->next[rank] < p->schedule->op_count[rank]) {
        size_t first = p->next[rank];
        size_t size = dts_schedule_block_size(p->schedule, rank, first);
        for (size_t i = first; i < first + size; i++) {
            if (!runnable(p, rank, &ops[i])) {
                return any;
            }
        }
        for (size_t i = first; i < first + size; i++) {
            execute(p, rank, &ops[i]);
        }
        p->next[rank] += size;
        any = true;
    }
    return any;
}

static void check_order(const dts_schedule *schedule, dts_arena *arena) {
    const dts_schedule_shape *s = &schedule->shape;
    bool both = schedule->layout == DTS_LAYOUT_BIDIR;
    progress p = {.schedule = schedule,
                  .virtual_stages = dts_virtual_stage_count(schedule->layout, s->stages, s->chunks),
                  .microbatches = both ? s->microbatches / 2 : s->microbatches};
    size_t slots = (size_t)p.virtual_stages * (size_t)p.microbatches * (both ? 2 : 1);
    for (int kind = 0; kind < 3; kind++) {
        p.done[kind] = dts_arena_array(arena, slots, sizeof *p.done[kind]);
    }
    p.next = dts_arena_array(arena, (size_t)s->stages, sizeof *p.next);
    bool any = true;
    while (any) {
        any = false;
        for (int rank = 0; rank < s->stages; rank++) {
            any = advance(&p, rank) || any;
        }
    }
    for (int rank = 0; rank < s->stages; rank++) { /* free of deadlock */
        assert_int_equal(p.next[rank], schedule->op_count[rank]);
    }
    for (int kind = 0; kind < 3; kind++) { /* complete */
        for (size_t i = 0; i < slots; i++) {
            assert_true(p.done[kind][i]);
        }
    }
}

/* A refusal names a number of stages, microbatches or chunks that is legal. */
static void check_refusal(const dts_schedule_method *method, const dts_schedule_shape *shape) {
    dts_diag *diag = dts_diag_new();
    assert_int_equal(method->check(shape, diag), DTS_INVALID);
    assert_int_equal(dts_diag_errors(diag), 1);
    const char *help = dts_diag_get(diag, 0)->help;
    assert_non_null(help);
    int first, second;
    char what[16];
    int found = sscanf(help, "use %d or %d %15[a-z]", &first, &second, what);
    if (found != 3) {
        second = 0;
        found = sscanf(help, "use %d %15[a-z]", &first, what);
        assert_int_equal(found, 2);
    }
    const int numbers[] = {first, second};
    for (int i = 0; i < (second > 0 ? 2 : 1); i++) {
        dts_schedule_shape mended = *shape;
        int *member = strncmp(what, "micro", 5) == 0   ? &mended.microbatches
                      : strncmp(what, "chunk", 5) == 0 ? &mended.chunks
                                                       : &mended.stages;
        *member = numbers[i];
        dts_diag *again = dts_diag_new();
        if (method->check(&mended, again) != DTS_OK) { /* another member may be illegal still */
            assert_string_not_equal(dts_diag_get(again, 0)->text, dts_diag_get(diag, 0)->text);
            assert_true(member != &mended.microbatches);
        }
        dts_diag_free(again);
    }
    dts_diag_free(diag);
}

/* The peak is at one of the moments that hold most, whatever B frees; passes in turns are one step there. */
static void check_moments(const dts_schedule *schedule, bool fuses, dts_arena *arena) {
    static const double frees[] = {-2, 0, 0.25, 1};
    const dts_moments *moments = dts_schedule_moments(schedule, arena);
    assert_non_null(moments);
    dts_schedule as = *schedule;
    const double chunks = schedule->layout == DTS_LAYOUT_BIDIR ? 1 : schedule->shape.chunks;
    for (size_t i = 0; i < sizeof frees / sizeof frees[0]; i++) {
        as.shape.input_frees = frees[i];
        for (int rank = 0; rank < as.shape.stages; rank++) {
            double most = 0;
            for (size_t k = 0; k < moments[rank].count; k++) {
                const dts_schedule_moment *now = &moments[rank].items[k];
                assert_true(now->last_whole <= now->whole && now->last_halves <= now->halves);
                most = fmax(most, ((double)now->whole + (1 - frees[i]) * (double)now->halves) / chunks);
            }
            const double peak = dts_schedule_peak_activation(&as, rank);
            assert_true(most <= peak + 1e-9 && (fuses || most >= peak - 1e-9));
        }
    }
}

static void check_shape(const dts_schedule_method *method, const expectation *expected, const dts_schedule_shape *shape,
                        int *built) {
    if (method->check(shape, NULL) != DTS_OK) {
        check_refusal(method, shape);
        return;
    }
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_schedule schedule;
    golden_build(method, shape, arena, &schedule);
    assert_string_equal(schedule.name, method->name);
    assert_int_equal(schedule.layout, method->layout);
    check_order(&schedule, arena);
    for (int rank = 0; rank < shape->stages; rank++) {
        double want = expected->peak(shape, rank);
        double got = dts_schedule_peak_activation(&schedule, rank);
        if (expected->at_most ? got > want + 1e-12 : fabs(got - want) > 1e-12) {
            print_error("%s p=%d m=%d v=%d rank %d: peak %g, expected %g\n", method->name, shape->stages,
                        shape->microbatches, shape->chunks, rank, got, want);
            fail();
        }
    }
    check_moments(&schedule, method->fuses, arena);
    (*built)++;
    dts_arena_free(arena);
}

static void every_schedule_keeps_the_invariants(void **state) {
    (void)state;
    size_t count;
    const dts_schedule_method *const *methods = dts_schedule_methods(&count);
    assert_int_equal(count, sizeof expectations / sizeof *expectations);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(methods[i]->name, expectations[i].name);
        assert_ptr_equal(dts_schedule_find(methods[i]->name), methods[i]);
        assert_true(methods[i]->summary != NULL && methods[i]->origin != NULL);
        int built = 0;
        for (int p = 1; p <= STAGES_TO; p++) {
            for (int m = 1; m <= MICROBATCHES_TO; m++) {
                for (int v = 1; v <= CHUNKS_TO; v++) {
                    dts_schedule_shape shape = {.stages = p,
                                                .microbatches = m,
                                                .chunks = v,
                                                .forward = 1,
                                                .backward_input = 1,
                                                .backward_weight = 1};
                    check_shape(methods[i], &expectations[i], &shape, &built);
                }
            }
        }
        assert_true(built >= 20);
    }
}

static void expect_refusal(const char *name, dts_schedule_shape shape, const char *text, const char *help) {
    dts_diag *diag = dts_diag_new();
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_schedule schedule;
    assert_int_equal(dts_schedule_build(name, &shape, arena, &schedule, diag), DTS_INVALID);
    assert_string_equal(dts_diag_get(diag, 0)->text, text);
    if (help != NULL) {
        assert_string_equal(dts_diag_get(diag, 0)->help, help);
    }
    dts_arena_free(arena);
    dts_diag_free(diag);
}

static dts_schedule_shape shape_of(int p, int m, int v) {
    return (dts_schedule_shape){.stages = p, .microbatches = m, .chunks = v};
}

static void papers_names_find_the_same_schedules(void **state) {
    (void)state;
    assert_ptr_equal(dts_schedule_find("zb-1p"), dts_schedule_find("zb1p-heuristic"));
    assert_ptr_equal(dts_schedule_find("zb-2p"), dts_schedule_find("zb2p-heuristic"));
    assert_ptr_equal(dts_schedule_find("1f1b-interleaved"), dts_schedule_find("interleaved-1f1b"));
    assert_null(dts_schedule_find("zb-3p"));
}

static void refusals_say_what_to_do(void **state) {
    (void)state;
    expect_refusal("interleaved-1f1b", shape_of(4, 10, 2),
                   "the number of microbatches (10) must be a multiple of the number of stages (4)",
                   "use 8 or 12 microbatches");
    expect_refusal("interleaved-1f1b", shape_of(4, 3, 2),
                   "the number of microbatches (3) must be a multiple of the number of stages (4)",
                   "use 4 microbatches");
    expect_refusal("interleaved-1f1b", shape_of(4, 8, 1), "interleaving needs at least 2 chunks per stage, not 1",
                   "use 2 chunks or more, or 1f1b");
    dts_schedule_shape grouped = shape_of(4, 9, 2);
    grouped.group = 8;
    expect_refusal("interleaved-1f1b", grouped,
                   "9 microbatches in groups of 8 leave a last group of 1, fewer than the 4 stages",
                   "use 8 or 12 microbatches");
    grouped.group = 3;
    expect_refusal("interleaved-1f1b", grouped, "the group of 3 microbatches is smaller than the 4 stages",
                   "use a group of 4 or more");
    expect_refusal("gpipe", grouped, "this schedule has no choice of group size, but 3 was given",
                   "leave it out, or use interleaved-1f1b");
    expect_refusal("1f1b", shape_of(4, 8, 2), "this schedule has one chunk per stage, not 2",
                   "use 1 chunk, or a schedule with several such as interleaved-1f1b");
    expect_refusal("dualpipe", shape_of(3, 8, 2), "the number of stages (3) must be even", "use 2 or 4 stages");
    expect_refusal("dualpipe", shape_of(4, 9, 2),
                   "the number of microbatches (9) must be even: half of them run in each direction",
                   "use 8 or 10 microbatches");
    expect_refusal("dualpipev", shape_of(4, 7, 2),
                   "this schedule needs at least two microbatches per stage: 7 are fewer than 2 x 4",
                   "use 8 microbatches or more");
    expect_refusal("zb-h1", shape_of(0, 8, 1), "the number of stages must be at least 1, not 0", "use 1 or more");
    expect_refusal("1f1b", shape_of(5000, 8, 1), "the number of stages must be at most 4096, not 5000", NULL);
    expect_refusal("1f1b", shape_of(4096, 1000000, 1),
                   "4096 stages x 1000000 microbatches x 1 chunks give up to 1.23e+10 operations, more than 1e+08",
                   "use fewer stages, microbatches or chunks");
    expect_refusal("1f1", shape_of(4, 8, 1), "unknown schedule '1f1'", "did you mean '1f1b'?");
    expect_refusal("nonsense", shape_of(4, 8, 1), "unknown schedule 'nonsense'", NULL);
}

static dts_status build_only(const dts_schedule_method *method, const dts_schedule_shape *shape) {
    dts_diag *diag = dts_diag_new();
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_schedule schedule;
    const dts_status status = dts_schedule_build(method->name, shape, arena, &schedule, diag);
    dts_arena_free(arena);
    dts_diag_free(diag);
    return status;
}

/* What is refused for its flushes is offered other numbers, and those are taken. */
static void refusals_of_flushes_offer_what_is_taken(void **state) {
    (void)state;
    size_t count = 0;
    const dts_schedule_method *const *methods = dts_schedule_methods(&count);
    for (size_t i = 0; i < count; i++) {
        for (int microbatches = 4; microbatches <= MICROBATCHES_TO && !methods[i]->asynchronous; microbatches += 4) {
            for (int flushes = 2; flushes <= 4; flushes += 2) {
                dts_schedule_shape shape = {.stages = 4,
                                            .microbatches = microbatches,
                                            .chunks = methods[i]->default_chunks,
                                            .flushes = flushes,
                                            .forward = 1,
                                            .backward_input = 1,
                                            .backward_weight = 1};
                if (build_only(methods[i], &shape) == DTS_OK) {
                    continue;
                }
                int fewer = 0, more = 0;
                dts_schedule_mend_flushes(methods[i], &shape, &fewer, &more);
                assert_true(more > microbatches && fewer < flushes);
                shape.microbatches = more;
                assert_int_equal(build_only(methods[i], &shape), DTS_OK);
                shape.microbatches = microbatches;
                shape.flushes = fewer;
                assert_true(fewer == 0 || build_only(methods[i], &shape) == DTS_OK);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_schedule_keeps_the_invariants),
        cmocka_unit_test(papers_names_find_the_same_schedules),
        cmocka_unit_test(refusals_say_what_to_do),
        cmocka_unit_test(refusals_of_flushes_offer_what_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
