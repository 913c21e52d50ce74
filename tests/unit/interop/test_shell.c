/* What a script leaves open is said; what it takes to read one grows as the script does. */
#include "check.h"
#include "interop/inside.h"

typedef struct script {
    dts_settings settings;
    dts_diag *diag;
    dts_status status;
} script;

static script read_script(const char *text) {
    script s = {.settings.arena = dts_arena_new(DTS_ARENA_UNLIMITED), .diag = dts_diag_new()};
    s.status = dts_read_shell(text, strlen(text), "run.sh", &s.settings, s.diag);
    return s;
}

static void drop(script *s) {
    dts_diag_free(s->diag);
    dts_arena_free(s->settings.arena);
}

static void check(const char *text, const char *value, const char *doubt) {
    script s = read_script(text);
    assert_int_equal(s.status, DTS_OK);
    const dts_setting *n = dts_settings_find(&s.settings, "n");
    assert_non_null(n);
    if (strcmp(n->value, value) != 0 || (n->doubts == NULL) != (doubt == NULL) ||
        (doubt != NULL && strcmp(n->doubts->text, doubt) != 0)) {
        print_error("%s\n  %s: %s\n", text, n->value, n->doubts != NULL ? n->doubts->text : "no doubt");
        fail();
    }
    drop(&s);
}

static void what_hangs_on_a_condition_is_named(void **state) {
    (void)state;
    check("if [ -f x ]; then\nN=12\nelse\nN=24\nfi\ntorchrun --n $N", "24",
          "N is set on lines 2 and 4, under a condition; 24 was taken");
    check("N=12\ncase $1 in\na) N=24;;\nb) N=36;;\nesac\ntorchrun --n $N", "36",
          "N is set on lines 1, 3 and 4, under a condition; 36 was taken");
    check("[ -z \"$N\" ] && N=12\ntorchrun --n $N", "12", "N is set on line 1, under a condition; 12 was taken");
    check("N=12\ngrep -q x y && N=24\nM=$((N * 2))\ntorchrun --n $M", "48",
          "N is set on lines 1 and 2, under a condition; 24 was taken");
    check("N=12\nfor f in *.txt; do\nN=24\ndone\ntorchrun --n $N", "24",
          "N is set on lines 1 and 3, under a condition; 24 was taken");
    check("N=12\nwhile read x; do\nN=24\ndone\ntorchrun --n $N", "24",
          "N is set on lines 1 and 3, under a condition; 24 was taken");
    check("N=12\nf() {\nN=24\n}\ngrep x y || f\ntorchrun --n $N", "24",
          "N is set on lines 1 and 3, under a condition; 24 was taken");
    /* what a value in doubt decides is in doubt, too */
    check("S=a\ngrep x y && S=b\nif [ $S = a ]; then N=12; else N=24; fi\ntorchrun --n $N", "24",
          "S is set on lines 1 and 2, under a condition; b was taken");
    /* a known value stays where another branch leaves it open */
    check("N=1\nif [ $X = y ]; then N=$WORLD; fi\ntorchrun --n $N", "1",
          "N is set on lines 1 and 2, under a condition; 1 was taken");
    /* no doubt where all ways are the same, or where another part of the text is in doubt */
    check("N=8\n[ -f x ] && N=8\ntorchrun --n $N", "8", NULL);
    check("A=\"--n 12\"\n[ -f x ] && A=\"$A --m 24\"\ntorchrun $A", "12", NULL);
    check("A=\"--m 24 --n 12\"\n[ -f x ] && A=\"--m 48 --n 12\"\ntorchrun $A", "12", NULL);
    check("A=(--m 24 --n 12)\n[ -f x ] && A=(--m 48 --n 12)\ntorchrun ${A[@]}", "12", NULL);
    check("if [ $1 = a ]; then echo usage; exit 1; fi\nN=3\ntorchrun --n $N", "3", NULL);
}

static void what_may_be_gone_is_told(void **state) {
    (void)state;
    static const char *const scripts[] = {
        "[ $S = a ] && A=\"--m 4\"\n[ $S = b ] && A=\ntorchrun --n 12 $A",
        "[ $S = a ] && A=(--m 4)\n[ $S = b ] && A=()\nB=\"$A x\"\nB+=y\ntorchrun --n 12 \"$B\"",
        "[ $S = a ] && A=\"--m 4\"\n[ $S = b ] && A=\ncmd=\"torchrun --n 12 $A\"\neval $cmd"};
    for (size_t i = 0; i < sizeof scripts / sizeof scripts[0]; i++) {
        script s = read_script(scripts[i]);
        assert_int_equal(dts_diag_warnings(s.diag), 1);
        assert_string_equal(dts_diag_get(s.diag, 0)->text,
                            "A is set on lines 1 and 2, under a condition; '' was taken");
        drop(&s);
    }
}

static void what_is_not_understood_is_left(void **state) {
    (void)state;
    check("torchrun --n $((WORLD / 8))", "$((WORLD / 8))",
          "'WORLD / 8' on line 1 cannot be calculated: WORLD is not known");
    check("N=4\n\ntorchrun --n $((N / 0))", "$((N / 0))", "'N / 0' on line 3 cannot be calculated");
    check("N=4; A=$1\n((N*=A))\ntorchrun --n $N", "$((N*=A))", "'N*=A' on line 2 cannot be calculated: A is not known");
    check("N=4; M=2\n((M = N / $1))\ntorchrun --n $N", "4", NULL);
    check("M=abc\ntorchrun --n ${M/[a-c]/x}", "${M/[a-c]/x}", "'${M/[a-c]/x}' on line 2 is not understood");
    check("N=(1 2)\nN[0]=3\ntorchrun --n ${N[0]}", "${N}", "elements of N, on line 2, are not read");
    check("N=3\nread N\ntorchrun --n $N", "${N}", NULL);
    check("torchrun --n $(nproc)", "$(nproc)", NULL);
}

static void words_of_the_last_command_count(void **state) {
    (void)state;
    check("torchrun --n 1 2>&1 | tee log", "1", NULL);
    check("torchrun --n 4 &> log; echo done", "4", NULL);
    check("bash -x -c 'N=3; torchrun --n $N'", "3", NULL);
    check("sbatch <<EOF\n#!/bin/bash\nsrun torchrun --n 5\nEOF\n", "5", NULL);
    check("cat > job.sh <<EOF\nsrun torchrun --n 5\nEOF\nsbatch job.sh", "5", NULL);
    check("N=1\nGPUS=8 bash -c 'torchrun --n $GPUS'", "8", NULL);
    check("cmd=\"torchrun --n '([0]*3+[1]*21)'\"; eval $cmd", "([0]*3+[1]*21)", NULL);
    check("done fi } torchrun --n 5 )", "5", NULL);
    check("#!/bin/bash\nmain() {\ntorchrun --n 5 \"$@\"\n}\nmain \"$@\"\n", "5", NULL);
    check("torchrun --m x --n \"$@\"", "true", NULL);
    script s = read_script("torchrun --n 2 $EXTRA --m 3");
    assert_string_equal(dts_settings_get(&s.settings, "n"), "2");
    assert_int_equal(dts_diag_warnings(s.diag), 1);
    assert_string_equal(dts_diag_get(s.diag, 0)->text, "'$EXTRA' is not known, and may hold flags");
    drop(&s);
    s = read_script("if [ -f x ]; then\ntorchrun --n 1\nelse\ntorchrun --n 2\nfi");
    assert_string_equal(dts_settings_get(&s.settings, "n"), "2");
    assert_string_equal(dts_diag_get(s.diag, 0)->text,
                        "this command is taken, but it runs under a condition, and the one on line 2 may run, too");
    drop(&s);
}

/* ---- cost ---- */

static void repeat(dts_text *text, const char *begin, const char *line, size_t times, const char *end) {
    dts_text_clear(text);
    dts_text_add(text, begin);
    dts_text_add_repeated(text, line, times);
    dts_text_add(text, end);
}

static void memory_grows_as_the_script_does(void **state) {
    (void)state;
    enum { BYTES_FOR_A_BYTE = 200, LEAST = 100000 };
    dts_text text = {0};
    static const char *const cases[][3] = {{"torchrun --n", " word", ""},
                                           {"", "ls a b c\n", "torchrun --n 1"},
                                           {"", "N=4\n", "torchrun --n $N"},
                                           {"f() {\n", "N=4\n", "}\nf\ntorchrun --n $N"},
                                           {"", "(N=4)\n", "torchrun --n 1"},
                                           {"A=(", "word ", ")\ntorchrun --n ${A[@]}"},
                                           {"N=1\n", "[ $1 = x ] && N=2\n", "torchrun --n $N"},
                                           {"", "if [ $1 ]; then\n", "torchrun --n 1"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        repeat(&text, cases[i][0], cases[i][1], i + 1 < sizeof cases / sizeof cases[0] ? 50000 : 50, cases[i][2]);
        script s = read_script(dts_text_string(&text));
        assert_int_equal(s.status, DTS_OK);
        const size_t used = dts_arena_used(s.settings.arena);
        if (used > BYTES_FOR_A_BYTE * text.length + LEAST) {
            print_error("%s: %zu bytes for %zu\n", cases[i][1], used, text.length);
            fail();
        }
        drop(&s);
    }
    dts_text_free(&text);
}

static void refuse(const char *text, const char *message) {
    script s = read_script(text);
    assert_int_equal(s.status, DTS_INVALID);
    assert_string_equal(dts_diag_get(s.diag, 0)->text, message);
    drop(&s);
}

static void growth_of_its_own_has_a_limit(void **state) {
    (void)state;
    dts_text text = {0};
    repeat(&text, "A=xxxxxxxxxx\n", "A=$A$A\n", 40, "torchrun --n $A");
    refuse(dts_text_string(&text), "the script's variables and words grow past 16 MiB here");
    repeat(&text, "", "while true; do ", 9, "torchrun --n 1");
    refuse(dts_text_string(&text), "the script runs more than 50149 commands");
    refuse("f() { f; }\nf\ntorchrun --n 1", "commands or functions stand more than 100 deep in others");
    repeat(&text, "", "( ", 3000, "torchrun --n 1");
    refuse(dts_text_string(&text), "commands or functions stand more than 100 deep in others");
    repeat(&text, "torchrun --n ", "${A:-", 3000, ""); /* it stays as it is */
    check(dts_text_string(&text), dts_text_string(&text) + strlen("torchrun --n "), NULL);
    /* a loop without an end, around the training */
    check("while true; do\ntorchrun --n 1\nsleep 5\ndone", "1", NULL);
    dts_text_free(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_hangs_on_a_condition_is_named), cmocka_unit_test(what_may_be_gone_is_told),
        cmocka_unit_test(what_is_not_understood_is_left),     cmocka_unit_test(words_of_the_last_command_count),
        cmocka_unit_test(memory_grows_as_the_script_does),    cmocka_unit_test(growth_of_its_own_has_a_limit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
