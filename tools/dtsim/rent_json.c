/* What to rent, as JSON. */
#include <math.h>
#include <string.h>

#include "rent_write.h"

static void json_offer(dts_json *json, cJSON *offers, const dts_rent *rent, const dts_offer *offer) {
    const dts_finding *plan = dts_offer_plan(offer);
    cJSON *row = dts_json_object(json, offers, NULL);
    dts_json_string(json, row, "cluster", offer->cluster);
    dts_json_string(json, row, "nodes", offer->nodes);
    if (plan == NULL) {
        dts_json_string(json, row, "reason", offer->reason);
        return;
    }
    const dts_scenario_values *base = dts_scenario_get(offer->scenario);
    dts_text text = {0};
    dts_candidate_describe(&plan->candidate, base, &text);
    dts_json_string(json, row, "plan", dts_text_string(&text));
    json->failed = json->failed || text.failed;
    dts_text_free(&text);
    dts_search_json_settings(json, row, &plan->candidate, base);
    dts_json_integer(json, row, "gpus", plan->outcome.figures.gpus);
    dts_json_integer(json, row, "idle_gpus", base->cluster.nodes * base->cluster.idle_gpus);
    dts_json_number(json, row, "iteration_time_s", plan->outcome.figures.iteration_time_s);
    dts_json_number(json, row, "tokens_per_s", plan->outcome.figures.tokens_per_s);
    dts_json_number(json, row, "mfu", plan->outcome.figures.mfu);
    dts_json_number(json, row, "peak_device_gib", plan->outcome.figures.peak_device_gib);
    dts_json_number(json, row, "capacity_gib", plan->outcome.figures.capacity_gib);
    dts_json_number(json, row, "unserved_gib", plan->outcome.figures.unserved_gib);
    dts_json_number(json, row, "goodput", plan->outcome.figures.goodput);
    dts_json_number(json, row, "duration_s", offer->duration_s);
    dts_json_integer(json, row, "simulated", (int64_t)offer->search->counts.simulated);
    dts_json_number(json, row, "usd", offer->usd > 0 ? offer->usd : NAN);
    dts_json_number(json, row, "tokens_per_usd", offer->usd > 0 ? rent->tokens / offer->usd : NAN);
    dts_json_flag(json, row, "launchable", dts_search_launchable(offer->search, plan));
    dts_json_string(json, row, "obstacle", plan->obstacle);
    dts_json_flag(json, row, "in_time", offer->in_time);
    dts_json_flag(json, row, "in_budget", offer->in_budget);
    dts_json_flag(json, row, "pareto", offer->pareto);
    dts_json_flag(json, row, "tie", dts_rent_tie(rent, offer));
}

/* The keys of a list "a, b". */
static void json_keys(dts_json *json, cJSON *object, const char *name, const char *keys) {
    cJSON *list = dts_json_array(json, object, name);
    while (keys != NULL && *keys != '\0') {
        const size_t length = strcspn(keys, ",");
        dts_text key = {0};
        dts_text_add_bytes(&key, keys, length);
        dts_json_string(json, list, NULL, dts_text_string(&key));
        dts_text_free(&key);
        keys += length;
        keys += strspn(keys, ", ");
    }
}

dts_status dts_rent_write_json(const dts_rent *rent, const dts_search_writing *options, dts_text *out) {
    dts_json json = {0};
    cJSON *root = dts_json_begin(&json);
    dts_text text = {0};
    dts_rent_answer(rent, &text);
    dts_json_string(&json, root, "answer", dts_text_string(&text));
    json.failed = json.failed || text.failed;
    dts_text_free(&text);
    dts_json_number(&json, root, "tokens", rent->tokens);
    dts_json_number(&json, root, "deadline_s", rent->deadline_s);
    dts_json_number(&json, root, "budget_usd", rent->budget_usd);
    dts_json_string(&json, root, "objective", dts_objective_names[rent->objective]);
    dts_json_integer(&json, root, "within_limits", (int64_t)rent->within);
    json_keys(&json, root, "left_out", rent->left_out);
    json_keys(&json, root, "unpriced", options->unpriced);
    cJSON *offers = dts_json_array(&json, root, "offers");
    for (size_t i = 0; i < rent->count; i++) {
        json_offer(&json, offers, rent, &rent->offers[i]);
    }
    dts_json_flag(&json, root, "interrupted", rent->interrupted);
    return dts_json_end(&json, out);
}
