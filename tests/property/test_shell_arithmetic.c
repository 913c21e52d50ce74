/* Random expressions come out as bash has them: the same value and the same variables, and what bash refuses is not
 * understood. One bash calculates all of them. DTSIM_PROPERTY_SEED sets the seed. */
#include <inttypes.h>
#include <unistd.h>

#include "base/random.h"
#include "base/text.h"
#include "check.h"
#include "interop/shell_arithmetic.h"

enum { EXPRESSIONS = 10000, LONGEST = 4000, NAMES = 32, SHOWN = 4, LONG_NUMBER = 18 };

/* ---- variables ---- */

typedef struct names {
    char name[NAMES][LONGEST], text[NAMES][24];
    size_t count;
} names;

static size_t place_of(names *n, const char *name, size_t length) {
    size_t i = 0;
    while (i < n->count && (strlen(n->name[i]) != length || strncmp(n->name[i], name, length) != 0)) {
        i++;
    }
    assert_true(i < NAMES);
    if (i == n->count) {
        snprintf(n->name[n->count++], LONGEST, "%.*s", (int)length, name);
        n->text[i][0] = '\0'; /* unset: 0 */
    }
    return i;
}

static const char *get(void *context, const char *name, size_t length) {
    names *n = context;
    return n->text[place_of(n, name, length)];
}

static void set(void *context, const char *name, size_t length, int64_t value) {
    names *n = context;
    snprintf(n->text[place_of(n, name, length)], sizeof n->text[0], "%" PRId64, value);
}

static const char *const starts[] = {"a", "7", "b", "-3", "c", "16", "d", "2+1"};
enum { STARTS = sizeof starts / sizeof starts[0] };

static void begin(names *n) {
    n->count = 0;
    for (size_t i = 0; i < STARTS; i += 2) {
        snprintf(n->text[place_of(n, starts[i], 1)], sizeof n->text[0], "%s", starts[i + 1]);
    }
}

/* ---- expressions ---- */

static int below(dts_random *random, int count) {
    return (int)dts_random_below(random, (uint32_t)count);
}

static void say_number(dts_random *random, dts_text *out) {
    const int value = below(random, 300);
    switch (below(random, 12)) {
        case 0:
            dts_text_printf(out, "0x%x", (unsigned)value);
            break;
        case 1:
            dts_text_printf(out, "0%o", (unsigned)value);
            break;
        case 2:
            dts_text_printf(out, "36#z%d", value);
            break;
        case 3:
            dts_text_printf(out, "2#%d%d%d", value & 1, value >> 1 & 1, value >> 2 & 1);
            break;
        case 4:
            dts_text_printf(out, "%d%08d", 1 + below(random, 999999), below(random, 99999999));
            break;
        case 5:
            dts_text_add(out, "9223372036854775807");
            break;
        default:
            dts_text_printf(out, "%d", value % 20);
    }
}

static void say(dts_random *random, int depth, dts_text *out) {
    static const char *const between[] = {"*",  "/",  "%",  "+", "-", "<<", ">>", "<",  "<=", ">",
                                          ">=", "==", "!=", "&", "^", "|",  "&&", "||", "**", ","};
    static const char *const before[] = {"!", "~", " -", " +"};
    static const char *const assigned[] = {"=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "^=", "|="};
    const char *blank = below(random, 2) == 0 ? " " : "", *name = starts[2 * below(random, STARTS / 2)];
    const int sort = depth == 0 ? below(random, 2) : below(random, 20);
    if (sort == 0) {
        dts_text_add(out, name);
    } else if (sort == 1) {
        say_number(random, out);
    } else if (sort == 2) {
        dts_text_add(out, before[below(random, 4)]);
        say(random, depth - 1, out);
    } else if (sort <= 5) {
        dts_text_printf(out, "%s(", blank);
        say(random, depth - 1, out);
        dts_text_add(out, ")");
    } else if (sort == 6) {
        dts_text_printf(out, "(%s%s%s", name, blank, assigned[below(random, 11)]);
        say(random, depth - 1, out);
        dts_text_add(out, ")");
    } else if (sort == 7) {
        const char *step = below(random, 2) == 0 ? "++" : "--";
        const bool ahead = below(random, 2) == 0;
        dts_text_printf(out, " %s%s%s ", ahead ? step : "", name, ahead ? "" : step);
    } else if (sort == 8) {
        say(random, depth - 1, out);
        dts_text_printf(out, "%s?", blank);
        say(random, depth - 1, out);
        dts_text_printf(out, ":%s", blank);
        say(random, depth - 1, out);
    } else {
        say(random, depth - 1, out);
        dts_text_printf(out, "%s%s%s", blank, between[below(random, 20)], blank);
        say(random, depth - 1, out);
    }
}

/* One character another, or away: most of these are no expressions. */
static void spoil(dts_random *random, char *text) {
    static const char characters[] = "+-*/%<>=!&^|~?:,() 0123456789#";
    const size_t at = (size_t)below(random, (int)strlen(text));
    if (below(random, 2) == 0) {
        text[at] = characters[below(random, sizeof characters - 1)];
    } else {
        memmove(text + at, text + at + 1, strlen(text + at));
    }
}

/* Versions of bash differ in numbers beyond 64 bits and in 0x alone, which spoiling could make. */
static size_t longest_number(const char *text) {
    size_t longest = 0;
    for (; *text != '\0'; text++) {
        const size_t length = strspn(text, "0123456789 ()");
        longest = length > longest ? length : longest;
    }
    return longest;
}

static void draw_expression(dts_random *random, char out[LONGEST]) {
    dts_text text = {0};
    do {
        dts_text_clear(&text);
        say(random, 1 + below(random, 5), &text);
    } while (text.length >= LONGEST);
    snprintf(out, LONGEST, "%s", dts_text_string(&text));
    dts_text_free(&text);
    if (longest_number(out) < LONG_NUMBER && strstr(out, "0x") == NULL && below(random, 6) == 0) {
        spoil(random, out);
    }
}

/* ---- bash ---- */

static void write_script(FILE *script, dts_random *random) {
    for (int i = 0; i < EXPRESSIONS; i++) {
        char text[LONGEST];
        draw_expression(random, text);
        fputs("unset ${!a*} ${!b*} ${!c*} ${!d*}\n", script); /* a7, of a spoilt expression before */
        for (size_t s = 0; s < STARTS; s += 2) {
            fprintf(script, "%s='%s' ", starts[s], starts[s + 1]);
        }
        /* a line that is refused ends; the next one says so. A text in a variable may have any parentheses. */
        fprintf(script, "e='%s'\nr=$((e))\necho \"${r-refused} $a $b $c $d\"; unset r\n", text);
    }
}

static void what_bash_calculates_comes_out(void **state) {
    (void)state;
    const char *seed = getenv("DTSIM_PROPERTY_SEED");
    const uint64_t number = seed == NULL ? 26 : strtoull(seed, NULL, 10);
    dts_random *written = dts_random_new(number), *random = dts_random_new(number);
    assert_true(written != NULL && random != NULL);
    char name[] = "/tmp/dtsim-arithmetic-XXXXXX", command[128];
    const int descriptor = mkstemp(name);
    FILE *script = descriptor < 0 ? NULL : fdopen(descriptor, "w");
    assert_non_null(script);
    write_script(script, written);
    assert_int_equal(fclose(script), 0);
    snprintf(command, sizeof command, "bash %s 2>/dev/null", name);
    FILE *bash = popen(command, "r");
    assert_non_null(bash);
    int wrong = 0, refused = 0;
    static names n;
    for (int i = 0; i < EXPRESSIONS; i++) {
        char text[LONGEST], want[256] = "", got[256];
        draw_expression(random, text);
        begin(&n);
        int64_t value;
        const bool understood =
            dts_arithmetic(text, strlen(text), &(dts_arithmetic_names){.context = &n, .get = get, .set = set}, &value);
        assert_non_null(fgets(want, sizeof want, bash));
        const bool refuses = strncmp(want, "refused", strlen("refused")) == 0;
        snprintf(got, sizeof got, "%" PRId64 " %s %s %s %s\n", value, n.text[0], n.text[1], n.text[2], n.text[3]);
        refused += refuses;
        if (understood == refuses || (understood && strcmp(got, want) != 0)) {
            wrong++;
            if (wrong <= SHOWN) {
                print_error("%s\n  bash: %s  here: %s\n", text, want, understood ? got : "not understood");
            }
        }
    }
    pclose(bash);
    dts_random_free(written);
    dts_random_free(random);
    remove(name);
    assert_int_equal(wrong, 0);
    assert_in_range(refused, EXPRESSIONS / 20, EXPRESSIONS / 2); /* both sorts are there */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_bash_calculates_comes_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
