/* dtsim search: finds the best plan for a scenario's model and cluster. */
#include <stdlib.h>
#include <string.h>

#include "axes.h"
#include "base/quantity.h"
#include "command.h"
#include "overrides.h"
#include "progress.h"
#include "search_export.h"
#include "search_html.h"
#include "search_rent.h"
#include "search_soap.h"
#include "search_write.h"

enum {
    OPTION_SET = DTS_OPTION_FIRST,
    OPTION_SPACE,
    OPTION_METHOD,
    OPTION_OBJECTIVE,
    OPTION_OVER,
    OPTION_TOP,
    OPTION_SIMULATE,
    OPTION_SEED,
    OPTION_CHAINS,
    OPTION_PROPOSALS,
    OPTION_STORE,
    OPTION_THREADS,
    OPTION_FORMAT,
    OPTION_WALL_TIME,
    OPTION_CLUSTERS,
    OPTION_NODES,
    OPTION_PRICE,
    OPTION_TOKENS,
    OPTION_DEADLINE,
    OPTION_BUDGET,
    OPTION_EXPORT,
    OPTION_HTML
};

static const struct argp_option options[] = {
    {"over", OPTION_OVER, "KEY=V1,V2...", 0,
     "search these values of a key only, e.g. parallelism.tensor=1..8*2; repeatable", 1},
    {"set", OPTION_SET, "KEY=VALUE", 0, "override a value of the scenario; repeatable", 1},
    {"objective", OPTION_OBJECTIVE, "WHAT", 0, "time (default), cost, memory or throughput-per-dollar", 1},
    {"space", OPTION_SPACE, "SPACE", 0,
     "layouts (default); soap: every operator cut by itself (default for a graph); rent: clusters and numbers of "
     "nodes, "
     "with --tokens",
     2},
    {"method", OPTION_METHOD, "METHOD", 0, "exhaustive (default; soap: mcmc); `dtsim list methods` names all", 2},
    {"simulate", OPTION_SIMULATE, "N", 0,
     "simulate up to N candidates in full (default 96), and four times as many coarsely; 0: until the best is proven "
     "to "
     "be the best",
     2},
    {"seed", OPTION_SEED, "N", 0, "of methods that draw lots (default 1)", 2},
    {"chains", OPTION_CHAINS, "N", 0, "soap: Markov chains, each from another start (default 8)", 2},
    {"proposals", OPTION_PROPOSALS, "N", 0, "soap: strategies that each chain tries (default 10000)", 2},
    {"clusters", OPTION_CLUSTERS, "NAMES", 0,
     "what to rent: search on each of these cluster profiles (--space rent: all that have a price); '*h100*': those "
     "with a price whose name or GPU is like that",
     4},
    {"nodes", OPTION_NODES, "VALUES", 0,
     "with each of these numbers of nodes, e.g. 4..32*2 (--space rent: 1 to 64, doubling)", 4},
    {"price", OPTION_PRICE, "CLUSTER=USD/h", 0,
     "what a node of this cluster profile costs, e.g. dgx-h100=\"30 USD/h\"; repeatable", 4},
    {"tokens", OPTION_TOKENS, "N", 0, "tokens to train on, e.g. 300B (300e9) or 3x50000x1200: tells time and money", 4},
    {"deadline", OPTION_DEADLINE, "TIME", 0, "what takes longer comes last, e.g. \"3 weeks\"", 4},
    {"budget", OPTION_BUDGET, "MONEY", 0, "what costs more comes last, e.g. 150k$ or \"3 MUSD\"", 4},
    {"export", OPTION_EXPORT, "LAUNCHER", 0,
     "write the best plan for this launcher (see `dtsim export`), not the table", 3},
    {"top", OPTION_TOP, "N", 0, "plans to show (default 5), or offers to rent (default 20)", 3},
    {"store", OPTION_STORE, "FILE.db", 0, "write every result to this SQLite file as it comes, and take what is there",
     3},
    {"html", OPTION_HTML, "FILE", 0, "write all of it as one web page as well", 3},
    {"threads", OPTION_THREADS, "N", 0, "simulations at a time (default: one per core)", 3},
    {"format", OPTION_FORMAT, "FORMAT", 0, "text (default) or json", 3},
    {"wall-time", OPTION_WALL_TIME, NULL, 0, "add how long it took", 3},
    {0},
};

enum {
    MOST_SIMULATIONS = 1000000,
    MOST_SHOWN = 10000,
    MOST_CHAINS = 1024,
    MOST_PRICES = 64,
    MOST_PROPOSALS = 1000000000,
    USUAL_CHAINS = 8,
    USUAL_PROPOSALS = 10000
};

static const double MOST_QUANTITY = 1e18; /* tokens, seconds: beyond any plan, and still printed in full */

typedef struct search_arguments {
    dts_tool *tool;
    const char *scenario, *store_path, *html_path;
    const dts_search_space *space;
    const char *method;
    int objective;
    dts_overrides overrides;
    dts_axes axes;
    long top, simulations, seed, threads, chains, proposals;
    const dts_launcher *launcher; /* --export; NULL: none */
    int format;                   /* of dts_text_or_json */
    bool wall_time, simulations_given, top_given, chains_given, proposals_given;
    const char **clusters, **nodes;
    size_t cluster_count, node_count;
    dts_rent_price prices[MOST_PRICES];
    size_t price_count;
    double tokens, deadline_s, budget_usd;
} search_arguments;

static error_t parse_space(search_arguments *a, const char *text) {
    const char *names[16] = {NULL};
    for (size_t i = 0; i < dts_search_space_count; i++) {
        names[i] = dts_search_spaces[i]->name;
    }
    int choice = dts_tool_choice(a->tool, "--space", names, text);
    a->space = choice < 0 ? NULL : dts_search_spaces[choice];
    return choice < 0 ? DTS_EXIT_USAGE : 0;
}

static error_t parse_method(search_arguments *a, const char *text) {
    const char *names[16] = {NULL};
    for (size_t i = 0; i < dts_search_method_count; i++) {
        names[i] = dts_search_methods[i]->name;
    }
    int choice = dts_tool_choice(a->tool, "--method", names, text);
    a->method = choice < 0 ? NULL : names[choice];
    return choice < 0 ? DTS_EXIT_USAGE : 0;
}

static error_t parse_number(search_arguments *a, const char *option, const char *text, long minimum, long maximum,
                            long *out) {
    return dts_tool_integer(a->tool, option, text, minimum, maximum, out) ? 0 : DTS_EXIT_USAGE;
}

static error_t parse_values(search_arguments *a, const char *option, const char *text, const char ***values,
                            size_t *count) {
    dts_status status = dts_values_parse(option, text, a->tool->arena, values, count, a->tool->diag);
    return status == DTS_OK ? 0 : DTS_EXIT_USAGE;
}

/* Is this "1-8", which other tools take for a range? */
static bool is_dashed_range(const char *text) {
    const size_t first = strspn(text, "0123456789");
    const size_t last = text[first] == '-' ? strspn(text + first + 1, "0123456789") : 0;
    return first > 0 && last > 0 && text[first + 1 + last] == '\0';
}

/* Numbers of nodes: an offer that no cluster can make is a mistake of the command line, not an answer. */
static error_t parse_nodes(search_arguments *a, const char *text) {
    size_t offset = 0;
    const dts_field *bound = dts_schema_find(&dts_cluster_schema, "nodes", &offset);
    error_t code = parse_values(a, "--nodes", text, &a->nodes, &a->node_count);
    for (size_t i = 0; i < a->node_count && code == 0; i++) {
        long nodes = 0;
        if (is_dashed_range(a->nodes[i])) {
            const int first = (int)strcspn(a->nodes[i], "-");
            const char *last = a->nodes[i] + first + 1;
            const char *help = dts_arena_printf(a->tool->arena, "write %.*s..%s, or %.*s,%s", first, a->nodes[i], last,
                                                first, a->nodes[i], last);
            return dts_tool_usage(a->tool, help, "--nodes: '%s' is not a range", a->nodes[i]);
        }
        code = parse_number(a, "--nodes", a->nodes[i], (long)bound->minimum, (long)bound->maximum, &nodes);
    }
    return code;
}

/* help: what to write where the text is no such quantity. */
static error_t parse_quantity(search_arguments *a, const char *option, const char *text, dts_dimension dimension,
                              const char *help, double *out) {
    dts_diag *why = dts_diag_new();
    dts_status status = dts_quantity_parse(text, dimension, out, NULL, NULL, why);
    const bool negative = text[strspn(text, " ")] == '-';
    bool good = status == DTS_OK && *out > 0 && *out <= MOST_QUANTITY;
    if (!good) {
        const dts_message *message = why != NULL && !negative ? dts_diag_get(why, 0) : NULL;
        const bool own = message != NULL && message->help != NULL && /* "did you mean 300B?", "write 3 h" */
                         (dimension == DTS_DIM_COUNT || dimension == DTS_DIM_MONEY ||
                          strstr(message->help, dts_dimension_example(dimension)) == NULL);
        dts_tool_usage(a->tool, own ? message->help : help, message != NULL ? "%s: %s" : "%s: '%.40s' is not %s",
                       option, message != NULL ? message->text : text,
                       status == DTS_OK && *out > MOST_QUANTITY ? "at most 1e18" : "above 0");
    }
    dts_diag_free(why);
    return good ? 0 : DTS_EXIT_USAGE;
}

/* dgx-h100="30 USD/h" */
static error_t parse_price(search_arguments *a, const char *text) {
    static const char help[] = "write for instance --price 'dgx-h100=30 USD/h'";
    const char *equals = strchr(text, '=');
    double usd_per_hour = 0;
    if (equals == NULL || equals == text || a->price_count == MOST_PRICES) {
        return dts_tool_usage(a->tool, help,
                              equals == NULL || equals == text ? "--price: '%.80s' names no cluster and its price"
                                                               : "--price: '%.80s' is one too many",
                              text);
    }
    const error_t code = parse_quantity(a, "--price", equals + 1, DTS_DIM_MONEY_RATE, help, &usd_per_hour);
    char *name = dts_arena_printf(a->tool->arena, "%.*s", (int)(equals - text), text);
    a->prices[a->price_count++] = (dts_rent_price){.cluster = name, .usd_per_hour = equals + 1};
    return name == NULL ? dts_tool_exit(dts_diag_nomem(a->tool->diag)) : code;
}

static error_t parse(int key, char *argument, struct argp_state *state) {
    search_arguments *a = state->input;
    switch (key) {
        case OPTION_SET:
            return dts_overrides_set(&a->overrides, a->tool, argument);
        case OPTION_OVER:
            return dts_axes_option(&a->axes, a->tool, "--over", argument);
        case OPTION_SPACE:
            return parse_space(a, argument);
        case OPTION_METHOD:
            return parse_method(a, argument);
        case OPTION_OBJECTIVE:
            a->objective = dts_tool_choice(a->tool, "--objective", dts_objective_names, argument);
            return a->objective < 0 ? DTS_EXIT_USAGE : 0;
        case OPTION_HTML:
            return dts_tool_output(a->tool, "--html", argument, &a->html_path);
        case OPTION_EXPORT:
            a->launcher = dts_launch_choose(a->tool, "--export", argument, false);
            return a->launcher == NULL ? DTS_EXIT_USAGE : 0;
        case OPTION_TOP:
            a->top_given = true;
            return parse_number(a, "--top", argument, 1, MOST_SHOWN, &a->top);
        case OPTION_CLUSTERS:
            return parse_values(a, "--clusters", argument, &a->clusters, &a->cluster_count);
        case OPTION_NODES:
            return parse_nodes(a, argument);
        case OPTION_PRICE:
            return parse_price(a, argument);
        case OPTION_TOKENS:
            return parse_quantity(a, "--tokens", dts_tokens_written(a->tool, argument), DTS_DIM_COUNT,
                                  "write a number such as 300B", &a->tokens);
        case OPTION_DEADLINE:
            return parse_quantity(a, "--deadline", argument, DTS_DIM_TIME,
                                  "write a time such as \"36 h\", \"10 d\" or \"3 weeks\"", &a->deadline_s);
        case OPTION_BUDGET:
            return parse_quantity(a, "--budget", argument, DTS_DIM_MONEY, "write an amount such as 150k$ or \"3 MUSD\"",
                                  &a->budget_usd);
        case OPTION_SIMULATE:
            a->simulations_given = true;
            return parse_number(a, "--simulate", argument, 0, MOST_SIMULATIONS, &a->simulations);
        case OPTION_SEED:
            return parse_number(a, "--seed", argument, 0, 1 << 29, &a->seed);
        case OPTION_CHAINS:
            a->chains_given = true;
            return parse_number(a, "--chains", argument, 1, MOST_CHAINS, &a->chains);
        case OPTION_PROPOSALS:
            a->proposals_given = true;
            return parse_number(a, "--proposals", argument, 1, MOST_PROPOSALS, &a->proposals);
        case OPTION_STORE:
            return dts_tool_output(a->tool, "--store", argument, &a->store_path);
        case OPTION_THREADS:
            return dts_tool_threads(a->tool, argument, &a->threads);
        case OPTION_WALL_TIME:
            a->wall_time = true;
            return 0;
        case OPTION_FORMAT:
            return dts_tool_format(a->tool, dts_text_or_json, argument, &a->format);
        case ARGP_KEY_ARG:
            return dts_tool_scenario(a->tool, argument, &a->scenario);
        default:
            return ARGP_ERR_UNKNOWN;
    }
}

static dts_status write_answer(const search_arguments *a, const dts_search *search) {
    dts_text text = {0};
    dts_evidence evidence;
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    dts_status status = arena != NULL
                            ? dts_evidence_open(search->base, &a->tool->profiles, arena, &evidence, a->tool->diag)
                            : dts_diag_nomem(a->tool->diag);
    const dts_search_writing options_of_text = {.style = &a->tool->style,
                                                .top = (size_t)a->top,
                                                .wall_time = a->wall_time,
                                                .scenario = a->scenario,
                                                .overrides = a->overrides.items,
                                                .override_count = a->overrides.count,
                                                .evidence = &evidence};
    dts_status (*write)(const dts_search *, const dts_search_writing *, dts_text *) =
        a->format == DTS_FORMAT_JSON ? dts_search_write_json : dts_search_write_text;
    if (status == DTS_OK) {
        status = dts_tool_write_made(a->tool, write(search, &options_of_text, &text), &text);
    }
    if (status == DTS_OK && a->html_path != NULL) {
        status =
            dts_tool_write_page(a->tool, a->html_path, dts_search_write_html(search, &options_of_text, &text), &text);
    }
    dts_text_free(&text);
    dts_arena_free(arena);
    return status;
}

static dts_search_request request_of(const search_arguments *a, dts_progress *progress) {
    return (dts_search_request){.restrictions = a->axes.items,
                                .restriction_count = a->axes.count,
                                .method = a->method == NULL ? dts_search_methods[0]->name : a->method,
                                .objective = (dts_objective)a->objective,
                                .simulations = (size_t)a->simulations,
                                .seed = (uint64_t)a->seed,
                                .threads = (int)a->threads,
                                .stop = dts_interrupt_catch(),
                                .progress = dts_progress_tell,
                                .progress_context = progress};
}

/* A price is needed for what is asked in money. */
static dts_status check_price(const search_arguments *a, const dts_scenario_values *base) {
    bool money = a->objective == DTS_OBJECTIVE_COST || a->objective == DTS_OBJECTIVE_THROUGHPUT_PER_DOLLAR;
    if (!money || base->cluster.price_usd_per_hour > 0) {
        return DTS_OK;
    }
    return dts_diag_error(a->tool->diag, NULL, NULL, "set cluster.price, the USD per hour of a node",
                          "the price of cluster %s is unknown", base->cluster.name);
}

static int answer(const search_arguments *a, const dts_subject *subject, const dts_scenario *scenario,
                  dts_store *store) {
    dts_text study = {0}, document = {0};
    dts_text_printf(&study, "search %s", a->scenario);
    dts_effective_document(scenario, &document);
    if (store != NULL) {
        free(dts_store_study(store, dts_text_string(&study), dts_text_string(&document)));
    }
    dts_progress progress;
    dts_progress_begin(&progress, "simulations");
    dts_search_request request = request_of(a, &progress);
    request.base = dts_scenario_get(scenario);
    request.answers = a->launcher == NULL ? (size_t)a->top : 0;
    request.store = store;
    request.study = dts_text_string(&study);
    request.document = dts_text_string(&document);
    dts_scenario_values base = *request.base;
    dts_search_export export = {.tool = a->tool,
                                .subject = subject,
                                .scenario = scenario,
                                .base = request.base,
                                .launcher = a->launcher != NULL ? a->launcher : dts_launcher_of(scenario)};
    if (a->launcher != NULL) {
        request.accepts = dts_search_export_accepts;
        request.accepts_context = &export;
    } else if (export.launcher != NULL) {
        dts_search_export_ask(&export, &request);
    } else if (!dts_search_names_schedules(&request) && base.stack.schedules.count > 0) {
        request.accepts = dts_search_offered;
        request.accepts_context = &base;
    }
    dts_search *search = NULL;
    dts_status status = dts_search_spaces[DTS_SPACE_LAYOUTS]->run(&request, &search, a->tool->diag);
    dts_progress_end(&progress);
    if (status == DTS_OK && a->launcher == NULL && export.launcher != NULL) {
        status = dts_search_export_mark(&export, search);
    }
    int code = dts_tool_exit(status);
    if (status == DTS_OK) {
        const bool fits = dts_search_any_fits(search);
        bool exports = fits && a->launcher != NULL;
        code = dts_tool_exit(exports ? dts_search_export_write(&export, search) : write_answer(a, search));
        status = dts_tool_no_memory(a->tool, (size_t)search->counts.out_of_memory, "simulation");
        code = code != 0             ? code
               : search->interrupted ? dts_interrupt_exit()
               : status != DTS_OK    ? dts_tool_exit(status)
               : fits                ? DTS_EXIT_DONE
                                     : DTS_EXIT_NOT_FITTING;
    }
    dts_search_free(search);
    dts_search_export_clear(&export);
    dts_text_free(&study);
    dts_text_free(&document);
    return code;
}

/* Fewer candidates are simulated on each of many clusters than on one, or on those that the answer names. */
enum { SIMULATIONS_OF_OFFER = 8, TOP_OFFERS = 20 };

/* What to rent. */
static int rent(const search_arguments *a, const dts_subject *subject, dts_store *store) {
    dts_progress progress;
    dts_progress_begin(&progress, "offers");
    dts_rent_command command = {.scenario = a->scenario,
                                .subject = subject,
                                .overrides = &a->overrides,
                                .offers_given = a->space != dts_search_spaces[DTS_SPACE_RENT],
                                .clusters = a->clusters,
                                .nodes = a->nodes,
                                .cluster_count = a->cluster_count,
                                .node_count = a->node_count,
                                .prices = a->prices,
                                .price_count = a->price_count,
                                .top = a->top_given ? (size_t)a->top : TOP_OFFERS,
                                .tokens = a->tokens,
                                .deadline_s = a->deadline_s,
                                .budget_usd = a->budget_usd,
                                .search = request_of(a, &progress),
                                .progress = &progress,
                                .html_path = a->html_path,
                                .json = a->format == DTS_FORMAT_JSON};
    command.search.store = store;
    command.first_simulations = a->simulations_given ? 0 : SIMULATIONS_OF_OFFER;
    return dts_search_rent(a->tool, &command);
}

/* Operators cut by themselves: another kind of answer, in time only. */
static int answer_operators(const search_arguments *a, const dts_scenario *scenario) {
    static const char help[] = "leave it out, or use --space layouts";
    const char *wrong = a->axes.count > 0                    ? "--over"
                        : a->store_path != NULL              ? "--store"
                        : a->launcher != NULL                ? "--export"
                        : a->simulations_given               ? "--simulate"
                        : a->top_given                       ? "--top"
                        : a->objective != DTS_OBJECTIVE_TIME ? "--objective"
                                                             : NULL;
    if (wrong != NULL) {
        return dts_tool_usage(a->tool, help, "%s is not for --space soap", wrong);
    }
    const dts_soap_command command = {.scenario = scenario,
                                      .method = a->method == NULL ? "mcmc" : a->method,
                                      .seed = (uint64_t)a->seed,
                                      .chains = (uint32_t)a->chains,
                                      .proposals = (uint64_t)a->proposals,
                                      .threads = (int)a->threads,
                                      .stop = dts_interrupt_catch(),
                                      .html_path = a->html_path,
                                      .json = a->format == DTS_FORMAT_JSON,
                                      .wall_time = a->wall_time};
    return dts_search_soap(a->tool, &command);
}

/* Options of chains go with --space soap only; 0: there are none, or they do. */
static int check_chains(const search_arguments *a) {
    const char *wrong = a->chains_given ? "--chains" : a->proposals_given ? "--proposals" : NULL;
    return wrong == NULL ? 0
                         : dts_tool_usage(a->tool, "--simulate says how much is simulated among layouts",
                                          "%s is for --space soap", wrong);
}

/* One cluster. */
static int search_one(const search_arguments *a, const dts_subject *subject, dts_store *store) {
    dts_scenario *scenario = NULL;
    dts_status status = dts_scenario_load(subject->path, subject->overrides, subject->override_count,
                                          &a->tool->profiles, &scenario, a->tool->diag);
    bool graph = status == DTS_OK && dts_scenario_get(scenario)->graph.operators.count > 0;
    bool operators = a->space == NULL ? graph : a->space == dts_search_spaces[DTS_SPACE_SOAP];
    if (status == DTS_OK && graph && !operators) {
        status = dts_diag_fail(a->tool->diag, DTS_USAGE, "use --space soap",
                               "a graph of operators has no layers to lay out");
    }
    status = status == DTS_OK && !operators ? check_price(a, dts_scenario_get(scenario)) : status;
    int code = status != DTS_OK ? dts_tool_exit(status) : operators ? answer_operators(a, scenario) : check_chains(a);
    code = status == DTS_OK && !operators && code == 0 ? answer(a, subject, scenario, store) : code;
    dts_scenario_free(scenario);
    return code;
}

static bool is_renting(const search_arguments *a) {
    return a->space == dts_search_spaces[DTS_SPACE_RENT] || a->cluster_count > 0 || a->node_count > 0 ||
           a->price_count > 0 || a->deadline_s > 0 || a->budget_usd > 0 || a->tokens > 0;
}

/* What does not go together with renting; 0: all does. */
static int check_renting(const search_arguments *a) {
    if (a->space == dts_search_spaces[DTS_SPACE_SOAP]) {
        return dts_tool_usage(a->tool, "leave --space out, or use --space rent",
                              "what to rent is searched among layouts");
    }
    if (a->launcher != NULL) {
        return dts_tool_usage(a->tool, "choose an offer first, then search --export on its cluster and nodes",
                              "--export is not for what to rent");
    }
    if (a->objective == DTS_OBJECTIVE_MEMORY) {
        return dts_tool_usage(a->tool, "there are time, cost and throughput-per-dollar",
                              "--objective memory is not for what to rent");
    }
    const int chains = check_chains(a);
    if (chains != 0) {
        return chains;
    }
    if (!(a->tokens > 0)) {
        return dts_tool_usage(a->tool, "for instance --tokens 300B, or training.tokens in the scenario",
                              "time and money of a training run need --tokens");
    }
    return 0;
}

/* Errors that a subject's scenario has, and the tokens of the whole run that it asks for. */
static size_t count_errors(const search_arguments *a, const dts_subject *subject, double *tokens) {
    dts_diag *diag = dts_diag_new();
    dts_scenario *scenario = NULL;
    if (diag != NULL) {
        (void)dts_scenario_load(subject->path, subject->overrides, subject->override_count, &a->tool->profiles,
                                &scenario, diag);
    }
    const size_t count = diag != NULL && scenario == NULL ? dts_diag_count(diag) : 0;
    *tokens = scenario != NULL ? dts_scenario_get(scenario)->training.tokens : 0;
    dts_scenario_free(scenario);
    dts_diag_free(diag);
    return count;
}

/* The microbatch is searched, so a scenario need not have one: where that is an error less, it is 1. */
static dts_status complete(const search_arguments *a, dts_subject *subject, double *tokens) {
    const size_t errors = count_errors(a, subject, tokens);
    if (errors == 0) {
        return DTS_OK;
    }
    dts_override *all = dts_arena_array(a->tool->arena, subject->override_count + 1, sizeof *all);
    if (all == NULL) {
        return dts_diag_nomem(a->tool->diag);
    }
    for (size_t i = 0; i < subject->override_count; i++) {
        all[i] = subject->overrides[i];
    }
    all[subject->override_count] =
        (dts_override){.key = "training.micro_batch", .value = "1", .place = {.file = "search"}};
    const dts_subject completed = {
        .path = subject->path, .overrides = all, .override_count = subject->override_count + 1};
    if (count_errors(a, &completed, tokens) < errors) {
        *subject = completed;
    }
    return DTS_OK;
}

static int run(search_arguments *a, int argc, char **argv) {
    static const struct argp argp = {
        options,
        parse,
        "SCENARIO",
        "Finds the best plan for the model, cluster and batch of a scenario."
        "\vEvery legal layout is looked at with closed forms; what proven bounds exclude is dropped, and the best of "
        "the "
        "rest are simulated and ranked. The plain baselines always stand in the table. Exit code 4: nothing fits, or "
        "keeps the "
        "deadline and the budget.",
        NULL,
        NULL,
        NULL};
    int code;
    if (!dts_tool_parse(a->tool, "search", &argp, argc, argv, a, &code)) {
        return code;
    }
    if (a->scenario == NULL) {
        return dts_tool_no_scenario(a->tool);
    }
    dts_subject subject;
    dts_status found = dts_subject_find(a->tool, a->scenario, &a->overrides, &subject);
    double tokens = 0;
    found = found == DTS_OK ? dts_subject_hold(a->tool, &subject) : found;
    found = found == DTS_OK ? complete(a, &subject, &tokens) : found;
    if (found != DTS_OK) {
        return dts_tool_exit(found);
    }
    const bool renting = is_renting(a);
    a->tokens = a->tokens > 0 ? a->tokens : tokens;
    if ((code = renting ? check_renting(a) : 0) != 0) {
        return code;
    }
    if (a->html_path != NULL && a->launcher != NULL) {
        return dts_tool_usage(a->tool, "search once with each", "--html is for the table, --export for a plan");
    }
    dts_store *store = NULL;
    dts_status status = a->store_path == NULL ? DTS_OK : dts_store_open(a->store_path, &store, a->tool->diag);
    if (status == DTS_OK) {
        code = renting ? rent(a, &subject, store) : search_one(a, &subject, store);
        const dts_status stored = dts_store_check(store, a->tool->diag);
        const bool answered = code == DTS_EXIT_DONE || code == DTS_EXIT_NOT_FITTING;
        code = stored != DTS_OK && answered ? dts_tool_exit(stored) : code;
    } else {
        code = dts_tool_exit(status);
    }
    dts_store_close(store);
    return code;
}

int dts_cmd_search(dts_tool *tool, int argc, char **argv) {
    search_arguments a = {.tool = tool,
                          .top = 5,
                          .simulations = DTS_SEARCH_SIMULATIONS,
                          .seed = 1,
                          .chains = USUAL_CHAINS,
                          .proposals = USUAL_PROPOSALS};
    int code = run(&a, argc, argv);
    dts_overrides_free(&a.overrides);
    return code;
}
