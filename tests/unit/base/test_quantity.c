#include "base/quantity.h"

#include <locale.h>
#include <stdlib.h>

#include "check.h"

typedef struct good_case {
    const char *text;
    dts_dimension dimension;
    double value;
} good_case;

/* Exact: a decimal prefix must not cost a rounding. */
static const good_case good[] = {
    {"100 Gbit/s", DTS_DIM_BANDWIDTH, 12.5e9},
    {"100Gbit/s", DTS_DIM_BANDWIDTH, 12.5e9},
    {"12.5 GB/s", DTS_DIM_BANDWIDTH, 12.5e9},
    {"600 GB/s", DTS_DIM_BANDWIDTH, 600e9},
    {"1 MiB/s", DTS_DIM_BANDWIDTH, 1048576},
    {"8 bit/s", DTS_DIM_BANDWIDTH, 1},
    {"40 GiB", DTS_DIM_BYTES, 42949672960.0},
    {"40 GB", DTS_DIM_BYTES, 40e9},
    {"25 MiB", DTS_DIM_BYTES, 26214400},
    {"1 Gbit", DTS_DIM_BYTES, 1.25e8},
    {"1 EB", DTS_DIM_BYTES, 1e18},
    {"1EB", DTS_DIM_BYTES, 1e18},
    {"1 PiB", DTS_DIM_BYTES, 1125899906842624.0},
    {"512 B", DTS_DIM_BYTES, 512},
    {"5 us", DTS_DIM_TIME, 5e-6},
    {"5 µs", DTS_DIM_TIME, 5e-6},
    {"5 μs", DTS_DIM_TIME, 5e-6},
    {"1.5 ms", DTS_DIM_TIME, 1.5e-3},
    {"3 ns", DTS_DIM_TIME, 3e-9},
    {"7 ps", DTS_DIM_TIME, 7e-12},
    {"2 s", DTS_DIM_TIME, 2},
    {"90 min", DTS_DIM_TIME, 5400},
    {"2 h", DTS_DIM_TIME, 7200},
    {"1 d", DTS_DIM_TIME, 86400},
    {"312 TFLOP/s", DTS_DIM_FLOPS, 312e12},
    {"1.41 GHz", DTS_DIM_FREQUENCY, 1.41e9},
    {"1410 MHz", DTS_DIM_FREQUENCY, 1.41e9},
    {"400 W", DTS_DIM_POWER, 400},
    {"0.4 kW", DTS_DIM_POWER, 400},
    {"29.39 USD/h", DTS_DIM_MONEY_RATE, 29.39},
    {"$29.39/h", DTS_DIM_MONEY_RATE, 29.39},
    {"29.39 $/h", DTS_DIM_MONEY_RATE, 29.39},
    {"$ 30 / hour", DTS_DIM_MONEY_RATE, 30},
    {"150 kUSD", DTS_DIM_MONEY, 150000},
    {"$3M", DTS_DIM_MONEY, 3e6},
    {"USD 3M", DTS_DIM_MONEY, 3e6},
    {"US$ 3M", DTS_DIM_MONEY, 3e6},
    {"USD 30/h", DTS_DIM_MONEY_RATE, 30},
    {"3M$", DTS_DIM_MONEY, 3e6},
    {"$ 3 M", DTS_DIM_MONEY, 3e6},
    {"3M USD", DTS_DIM_MONEY, 3e6},
    {"3 MUSD", DTS_DIM_MONEY, 3e6},
    {"$150k", DTS_DIM_MONEY, 150000},
    {"150K$", DTS_DIM_MONEY, 150000},
    {"$1.5B", DTS_DIM_MONEY, 1.5e9},
    {"$5000", DTS_DIM_MONEY, 5000},
    {"5000 $", DTS_DIM_MONEY, 5000},
    {"$0", DTS_DIM_MONEY, 0},
    {"3 weeks", DTS_DIM_TIME, 3 * 604800},
    {"1 week", DTS_DIM_TIME, 604800},
    {"2w", DTS_DIM_TIME, 2 * 604800},
    {"36 hours", DTS_DIM_TIME, 36 * 3600},
    {"10 days", DTS_DIM_TIME, 864000},
    {"1.5 months", DTS_DIM_TIME, 1.5 * 730 * 3600},
    {"1 year", DTS_DIM_TIME, 365 * 86400},
    {"5 seconds", DTS_DIM_TIME, 5},
    {"80 %", DTS_DIM_NUMBER, 0.8},
    {"80%", DTS_DIM_NUMBER, 0.8},
    {"0.8", DTS_DIM_NUMBER, 0.8},
    {"-0.8", DTS_DIM_NUMBER, -0.8},
    {"+1.5e3", DTS_DIM_NUMBER, 1500},
    {".5", DTS_DIM_NUMBER, 0.5},
    {"5.", DTS_DIM_NUMBER, 5},
    {"  7  ", DTS_DIM_NUMBER, 7},
    {"300e9", DTS_DIM_COUNT, 300e9},
    {"300B", DTS_DIM_COUNT, 300e9},
    {"1.5 T", DTS_DIM_COUNT, 1.5e12},
    {"512M", DTS_DIM_COUNT, 512e6},
    {"131k", DTS_DIM_COUNT, 131e3},
    {"131K", DTS_DIM_COUNT, 131e3},
    {"0", DTS_DIM_COUNT, 0},
    {"1e3 us", DTS_DIM_TIME, 1e-3},
    {"0", DTS_DIM_TIME, 0},
    {"0.0", DTS_DIM_BYTES, 0},
    {"-0", DTS_DIM_BYTES, 0},
    {"0 GB/s", DTS_DIM_BANDWIDTH, 0},
    {"1e-320", DTS_DIM_NUMBER, 1e-320},
};

static void test_good(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        dts_diag *diag = dts_diag_new();
        double value = -1;
        if (dts_quantity_parse(good[i].text, good[i].dimension, &value, NULL, NULL, diag) != DTS_OK ||
            value != good[i].value || signbit(value) != signbit(good[i].value)) {
            fail_msg("'%s' gives %.17g, expected %.17g", good[i].text, value, good[i].value);
        }
        assert_int_equal(dts_diag_count(diag), 0);
        dts_diag_free(diag);
    }
}

typedef struct bad_case {
    const char *text;
    dts_dimension dimension;
    const char *message;
    const char *help;
} bad_case;

static const bad_case bad[] = {
    {"600 Gb", DTS_DIM_BANDWIDTH, "unknown unit 'Gb' in '600 Gb'", "write Gbit/s (bits) or GB/s (bytes)"},
    {"600 gbps", DTS_DIM_BANDWIDTH, "unknown unit 'gbps' in '600 gbps'", "write Gbit/s (bits) or GB/s (bytes)"},
    {"600 Gbps", DTS_DIM_BANDWIDTH, "unknown unit 'Gbps' in '600 Gbps'", "write Gbit/s (bits) or GB/s (bytes)"},
    {"600 gb/s", DTS_DIM_BANDWIDTH, "unknown unit 'gb/s' in '600 gb/s'", "write Gbit/s (bits) or GB/s (bytes)"},
    {"5 Gb", DTS_DIM_BYTES, "unknown unit 'Gb' in '5 Gb'", "write Gbit (bits) or GB (bytes)"},
    {"5 gib", DTS_DIM_BYTES, "unknown unit 'gib' in '5 gib'", "write 5 GiB"},
    {"5 bytes", DTS_DIM_BYTES, "unknown unit 'bytes' in '5 bytes'", "write 5 B"},
    {"5 Mbytes/s", DTS_DIM_BANDWIDTH, "unknown unit 'Mbytes/s' in '5 Mbytes/s'", "write 5 MB/s"},
    {"5 Mbits", DTS_DIM_BANDWIDTH, "unknown unit 'Mbits' in '5 Mbits'", "write 5 Mbit/s"},
    {"600", DTS_DIM_BANDWIDTH, "'600' has no unit", "write a bandwidth such as 100 Gbit/s or 12.5 GB/s"},
    {"600 GB", DTS_DIM_BANDWIDTH, "expected a bandwidth, got a size: '600 GB'", "write 600 GB/s"},
    {"600 GB/s", DTS_DIM_BYTES, "expected a size, got a bandwidth: '600 GB/s'", "write a size such as 40 GiB or 25 MB"},
    {"5 %", DTS_DIM_TIME, "expected a time, got a percentage: '5 %'", "write a time such as 5 us or 1.5 ms"},
    {"5 GB", DTS_DIM_NUMBER, "expected a plain number, got a size: '5 GB'", "write a plain number such as 0.8 or 80 %"},
    {"5 furlong", DTS_DIM_TIME, "unknown unit 'furlong' in '5 furlong'", "write a time such as 5 us or 1.5 ms"},
    {"5 usec", DTS_DIM_TIME, "unknown unit 'usec' in '5 usec'", "write 5 us"},
    {"5 mseconds", DTS_DIM_TIME, "unknown unit 'mseconds' in '5 mseconds'", "write 5 ms"},
    {"3 wks", DTS_DIM_TIME, "unknown unit 'wks' in '3 wks'", "write 3 weeks"},
    {"90 mins", DTS_DIM_TIME, "unknown unit 'mins' in '90 mins'", "write 90 min"},
    {"2 yrs", DTS_DIM_TIME, "unknown unit 'yrs' in '2 yrs'", "write 2 years"},
    {"1.5mo", DTS_DIM_TIME, "unknown unit 'mo' in '1.5mo'", "write 1.5 months"},
    {"1 fortnight", DTS_DIM_TIME, "unknown unit 'fortnight' in '1 fortnight'", "write 14 days"},
    {"2 h 30 min", DTS_DIM_TIME, "unknown unit 'h 30 min' in '2 h 30 min'", "write 2.5 h"},
    {"1d12h", DTS_DIM_TIME, "unknown unit 'd12h' in '1d12h'", "write 36 h"},
    {"1 h 2 x", DTS_DIM_TIME, "unknown unit 'h 2 x' in '1 h 2 x'", "write a time such as 5 us or 1.5 ms"},
    {"2026-12-24", DTS_DIM_TIME, "unknown unit '-12-24' in '2026-12-24'",
     "write how long it may take from now on, such as 30 days"},
    {"3 Weeks", DTS_DIM_TIME, "unknown unit 'Weeks' in '3 Weeks'", "did you mean weeks? units are case sensitive"},
    {"5 US", DTS_DIM_TIME, "unknown unit 'US' in '5 US'", "did you mean us? units are case sensitive"},
    {"312 TFLOPS", DTS_DIM_FLOPS, "unknown unit 'TFLOPS' in '312 TFLOPS'", "write 312 TFLOP/s"},
    {"312 tflop/s", DTS_DIM_FLOPS, "unknown unit 'tflop/s' in '312 tflop/s'",
     "did you mean TFLOP/s? units are case sensitive"},
    {"1.4 ghz", DTS_DIM_FREQUENCY, "unknown unit 'ghz' in '1.4 ghz'", "did you mean GHz? units are case sensitive"},
    {"400w", DTS_DIM_POWER, "expected a power, got a time: '400w'", "did you mean W? units are case sensitive"},
    {"400 watts", DTS_DIM_POWER, "unknown unit 'watts' in '400 watts'", "write 400 W"},
    {"3 $/hr", DTS_DIM_MONEY_RATE, "unknown unit '$/hr' in '3 $/hr'", "write 3 USD/h"},
    {"$3", DTS_DIM_MONEY_RATE, "expected a price per hour, got an amount of money: '$3'", "write 3 USD/h"},
    {"30 $", DTS_DIM_MONEY_RATE, "expected a price per hour, got an amount of money: '30 $'", "write 30 USD/h"},
    {"3M$", DTS_DIM_MONEY_RATE, "expected a price per hour, got an amount of money: '3M$'",
     "write a price per hour such as 29.39 USD/h"},
    {"$3/hr", DTS_DIM_MONEY_RATE, "unknown unit '/hr' in '$3/hr'", "write 3 USD/h"},
    {"$3 per hour", DTS_DIM_MONEY_RATE, "unknown unit 'per hour' in '$3 per hour'", "write 3 USD/h"},
    {"3 USD per hour", DTS_DIM_MONEY_RATE, "unknown unit 'USD per hour' in '3 USD per hour'", "write 3 USD/h"},
    {"$3$/h", DTS_DIM_MONEY_RATE, "'$3$/h' names its currency twice", "leave one of them out"},
    {"$3USD/h", DTS_DIM_MONEY_RATE, "'$3USD/h' names its currency twice", "leave one of them out"},
    {"$3M USD", DTS_DIM_MONEY, "'$3M USD' names its currency twice", "leave one of them out"},
    {"3M", DTS_DIM_MONEY, "unknown unit 'M' in '3M'", "write 3M$ or, in single quotes for the shell, '$3M'"},
    {"3m$", DTS_DIM_MONEY, "unknown unit 'm$' in '3m$'", "write 3M$ or, in single quotes for the shell, '$3M'"},
    {"3 million dollars", DTS_DIM_MONEY, "unknown unit 'million dollars' in '3 million dollars'",
     "write 3M$ or, in single quotes for the shell, '$3M'"},
    {"3B", DTS_DIM_MONEY, "expected an amount of money, got a size: '3B'",
     "write 3B$ or, in single quotes for the shell, '$3B'"},
    {"USD 3M USD", DTS_DIM_MONEY, "'USD 3M USD' names its currency twice", "leave one of them out"},
    {"€3", DTS_DIM_MONEY, "expected an amount of money, got '€3'",
     "prices are in US dollars: write what it is in those, such as 150k$"},
    {"150k EUR", DTS_DIM_MONEY, "unknown unit 'k EUR' in '150k EUR'",
     "prices are in US dollars: write what it is in those, such as 150k$"},
    {"5000", DTS_DIM_MONEY, "'5000' has no unit", "write 5000$ or, in single quotes for the shell, '$5000'"},
    {"$1,500", DTS_DIM_MONEY, "'$1,500' is not a decimal number",
     "write the number without separators, with a point before decimals"},
    {"$3", DTS_DIM_TIME, "expected a time, got '$3'", "write a time such as 5 us or 1.5 ms"},
    {"M", DTS_DIM_MONEY, "expected an amount of money, got 'M'", "write 3M$ or, in single quotes for the shell, '$3M'"},
    {"-$3", DTS_DIM_MONEY, "expected an amount of money, got '-$3'",
     "write 3M$ or, in single quotes for the shell, '$3M'"},
    {"$-3", DTS_DIM_MONEY, "an amount of money cannot be negative: '$-3'", "write it without the minus sign"},
    {"3 USD/h", DTS_DIM_MONEY, "expected an amount of money, got a price per hour: '3 USD/h'",
     "write an amount of money such as 150k$ or 1.5 MUSD"},
    {"3 EUR/h", DTS_DIM_MONEY_RATE, "unknown unit 'EUR/h' in '3 EUR/h'", "write a price per hour such as 29.39 USD/h"},
    {"128k", DTS_DIM_NUMBER, "unknown unit 'k' in '128k'", "write the number out: 128000 or 131072"},
    {"300 GB", DTS_DIM_COUNT, "unknown unit 'GB' in '300 GB'", "write a count such as 300e9 or 300B"},
    {"300b", DTS_DIM_COUNT, "unknown unit 'b' in '300b'", "did you mean 300B?"},
    {"1.5t", DTS_DIM_COUNT, "unknown unit 't' in '1.5t'", "did you mean 1.5T?"},
    {"100M tokens", DTS_DIM_COUNT, "unknown unit 'M tokens' in '100M tokens'", "did you mean 100M?"},
    {"80 %", DTS_DIM_COUNT, "unknown unit '%' in '80 %'", "write a count such as 300e9 or 300B"},
    {"-1B", DTS_DIM_COUNT, "a count cannot be negative: '-1B'", "write it without the minus sign"},
    {"1.5B", DTS_DIM_NUMBER, "expected a plain number, got a size: '1.5B'", "write a plain number such as 0.8 or 80 %"},
    {"abc", DTS_DIM_BYTES, "expected a size, got 'abc'", "write a size such as 40 GiB or 25 MB"},
    {"", DTS_DIM_BYTES, "expected a size, got ''", "write a size such as 40 GiB or 25 MB"},
    {"GB", DTS_DIM_BYTES, "expected a size, got 'GB'", "write a size such as 40 GiB or 25 MB"},
    {"-", DTS_DIM_NUMBER, "expected a plain number, got '-'", "write a plain number such as 0.8 or 80 %"},
    {".", DTS_DIM_NUMBER, "expected a plain number, got '.'", "write a plain number such as 0.8 or 80 %"},
    {"nan", DTS_DIM_NUMBER, "'nan' is not a finite number", "write a finite number"},
    {".nan", DTS_DIM_NUMBER, "'.nan' is not a finite number", "write a finite number"},
    {"-.inf", DTS_DIM_NUMBER, "'-.inf' is not a finite number", "write a finite number"},
    {"Infinity s", DTS_DIM_TIME, "'Infinity s' is not a finite number", "write a finite number"},
    {"0x10", DTS_DIM_NUMBER, "'0x10' is not a decimal number", "write the number in decimal"},
    {"0o17 s", DTS_DIM_TIME, "'0o17 s' is not a decimal number", "write the number in decimal"},
    {"1_000 s", DTS_DIM_TIME, "'1_000 s' is not a decimal number",
     "write the number without separators, with a point before decimals"},
    {"1,5 s", DTS_DIM_TIME, "'1,5 s' is not a decimal number",
     "write the number without separators, with a point before decimals"},
    {"1e999", DTS_DIM_NUMBER, "'1e999' is too large to compute with", "numbers reach to 1.8e308"},
    {"1e300 EB", DTS_DIM_BYTES, "'1e300 EB' is too large to compute with", "numbers reach to 1.8e308"},
    {"1e99999999999999999999", DTS_DIM_NUMBER, "'1e99999999999999999999' is too large to compute with",
     "numbers reach to 1.8e308"},
    {"1e-999 s", DTS_DIM_TIME, "'1e-999 s' is too small to compute with", "write 0 if that is meant"},
    {"-5 GB", DTS_DIM_BYTES, "a size cannot be negative: '-5 GB'", "write it without the minus sign"},
    {"5 GB GB", DTS_DIM_BYTES, "unknown unit 'GB GB' in '5 GB GB'", "write a size such as 40 GiB or 25 MB"},
    {"5 mB", DTS_DIM_BYTES, "unknown unit 'mB' in '5 mB'", "write Mbit (bits) or MB (bytes)"},
    {"5 \x1b[31m", DTS_DIM_BYTES, "unknown unit '?[31m' in '5 ?[31m'", "write a size such as 40 GiB or 25 MB"},
};

static void test_bad(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        dts_diag *diag = dts_diag_new();
        double value = -7;
        assert_int_equal(dts_quantity_parse(bad[i].text, bad[i].dimension, &value, NULL, "a.b", diag), DTS_INVALID);
        assert_true(value == -7); /* untouched */
        assert_int_equal(dts_diag_count(diag), 1);
        assert_string_equal(dts_diag_get(diag, 0)->text, bad[i].message);
        assert_string_equal(dts_diag_get(diag, 0)->help, bad[i].help);
        assert_string_equal(dts_diag_get(diag, 0)->key, "a.b");
        dts_diag_free(diag);
    }
}

static void test_many_digits(void **state) {
    (void)state;
    char text[400];
    memset(text, '1', sizeof text);
    text[sizeof text - 1] = '\0';
    dts_diag *diag = dts_diag_new();
    double value = 0;
    assert_int_equal(dts_quantity_parse(text, DTS_DIM_NUMBER, &value, NULL, NULL, diag), DTS_INVALID);
    assert_string_equal(dts_diag_get(diag, 0)->text, "the number has more than 120 digits");
    dts_diag_free(diag);
}

/* A decimal comma in the locale changes nothing. */
static void test_locale(void **state) {
    (void)state;
    static const char *const candidates[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    bool found = false;
    for (size_t i = 0; !found && i < sizeof candidates / sizeof candidates[0]; i++) {
        found = setlocale(LC_ALL, candidates[i]) != NULL;
    }
    double value = 0;
    assert_int_equal(dts_quantity_parse("1.41 GHz", DTS_DIM_FREQUENCY, &value, NULL, NULL, NULL), DTS_OK);
    dts_text text = {0};
    dts_quantity_format(value, DTS_DIM_FREQUENCY, 3, &text);
    setlocale(LC_ALL, "C");
    assert_true(value == 1.41e9);
    assert_string_equal(dts_text_string(&text), "1.41 GHz");
    dts_text_free(&text);
    if (!found) {
        print_message("no locale with a decimal comma is installed: ran in the C locale\n");
    }
}

typedef struct shown_case {
    double value;
    dts_dimension dimension;
    int significant;
    const char *text;
} shown_case;

static const shown_case shown[] = {
    {1.5e-5, DTS_DIM_TIME, 3, "15 us"},
    {3.2e10, DTS_DIM_BYTES, 3, "29.8 GiB"},
    {12.5e9, DTS_DIM_BANDWIDTH, 3, "12.5 GB/s"},
    {312e12, DTS_DIM_FLOPS, 3, "312 TFLOP/s"},
    {1.41e9, DTS_DIM_FREQUENCY, 3, "1.41 GHz"},
    {0.9999996, DTS_DIM_TIME, 3, "1 s"},
    {0.9994, DTS_DIM_TIME, 3, "999 ms"},
    {119.4, DTS_DIM_TIME, 3, "119 s"},
    {5400, DTS_DIM_TIME, 3, "90 min"},
    {86400, DTS_DIM_TIME, 3, "24 h"},
    {172800, DTS_DIM_TIME, 3, "2 d"},
    {0, DTS_DIM_TIME, 3, "0 s"},
    {0, DTS_DIM_NUMBER, 3, "0"},
    {0.05, DTS_DIM_NUMBER, 2, "0.05"},
    {123456, DTS_DIM_NUMBER, 3, "123456"},
    {1e-9, DTS_DIM_NUMBER, 3, "1e-09"},
    {-2.5, DTS_DIM_NUMBER, 3, "-2.5"},
    {1048576.0 * 1010, DTS_DIM_BYTES, 3, "1010 MiB"},
    {400, DTS_DIM_POWER, 3, "400 W"},
    {29.387, DTS_DIM_MONEY_RATE, 4, "29.39 USD/h"},
    {1e-13, DTS_DIM_TIME, 3, "0.1 ps"},
    {INFINITY, DTS_DIM_TIME, 3, "infinite"},
    {NAN, DTS_DIM_TIME, 3, "not a number"},
};

static void test_format(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
        dts_text text = {0};
        dts_quantity_format(shown[i].value, shown[i].dimension, shown[i].significant, &text);

        assert_string_equal(dts_text_string(&text), shown[i].text);
        dts_text_free(&text);
    }
}

static uint64_t next_random(uint64_t *state) { /* xorshift64 */
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Any double of any dimension is read back as itself. */
static void test_exact_round_trip(void **state) {
    (void)state;
    uint64_t seed = 88172645463325252u;
    for (int i = 0; i < 400; i++) {
        double exponent = (double)(next_random(&seed) % 600) - 300;
        double value = (double)(next_random(&seed) >> 11) * pow(10, exponent - 15);
        if (i % 3 == 0) {
            value = (double)(next_random(&seed) % 1000) * 1e-7;
        }
        for (dts_dimension d = DTS_DIM_NUMBER; d <= DTS_DIM_MONEY_RATE; d++) {
            dts_text text = {0};
            dts_quantity_format_exact(value, d, &text);
            double back = -1;
            assert_int_equal(dts_quantity_parse(dts_text_string(&text), d, &back, NULL, NULL, NULL), DTS_OK);
            assert_true(back == value);
            dts_text_free(&text);
        }
    }
}

static void test_exact_is_short(void **state) {
    (void)state;
    static const shown_case cases[] = {
        {42949672960.0, DTS_DIM_BYTES, 0, "40 GiB"},
        {12.5e9, DTS_DIM_BANDWIDTH, 0, "12.5 GB/s"},
        {5e-6, DTS_DIM_TIME, 0, "5 us"},
        {0.1, DTS_DIM_NUMBER, 0, "0.1"},
        {312e12, DTS_DIM_FLOPS, 0, "312 TFLOP/s"},
        {0, DTS_DIM_BYTES, 0, "0 B"},
        {0, DTS_DIM_TIME, 0, "0 s"},
        {1.41e9, DTS_DIM_FREQUENCY, 0, "1.41 GHz"},
        {100000, DTS_DIM_NUMBER, 0, "100000"},
        {1e18, DTS_DIM_NUMBER, 0, "1e+18"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dts_text text = {0};
        dts_quantity_format_exact(cases[i].value, cases[i].dimension, &text);
        assert_string_equal(dts_text_string(&text), cases[i].text);
        dts_text_free(&text);
    }
}

static void test_number_scan(void **state) {
    (void)state;
    double value = 7;
    assert_int_equal(dts_number_scan("1.5e3x", &value), 5);
    assert_true(value == 1500);
    assert_int_equal(dts_number_scan("2e", &value), 1);
    assert_true(value == 2);
    assert_int_equal(dts_number_scan("x", &value), 0);
    assert_int_equal(dts_number_scan("nan", &value), 0);
    assert_true(value == 2);
    assert_int_equal(dts_number_scan("-1e400", &value), 6);
    assert_true(value == -INFINITY);
    assert_int_equal(dts_number_scan("1e-400", &value), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),           cmocka_unit_test(test_bad),
        cmocka_unit_test(test_many_digits),    cmocka_unit_test(test_locale),
        cmocka_unit_test(test_format),         cmocka_unit_test(test_exact_round_trip),
        cmocka_unit_test(test_exact_is_short), cmocka_unit_test(test_number_scan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
