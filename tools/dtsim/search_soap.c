#include "search_soap.h"

#include <string.h>

#include "base/clock.h"
#include "progress.h"
#include "search/soap_search.h"
#include "soap_write.h"

enum { MOST_TRIED = 20000000 };

static dts_status make_graph(const dts_scenario_values *values, dts_arena *arena, dts_tensor_graph *graph,
                             dts_diag *diag) {
    const dts_training *training = &values->training;
    return values->graph.operators.count > 0
               ? dts_tensor_graph_make(&values->graph, training->global_batch, arena, graph, diag)
               : dts_tensor_graph_of_model(&values->model, training->global_batch, training->sequence_length, arena,
                                           graph, diag);
}

static dts_status search(dts_tool *tool, const dts_soap_command *command, dts_arena *arena, int *code) {
    const dts_scenario_values *values = dts_scenario_get(command->scenario);
    dts_diag_set_locator(tool->diag, dts_provenance_locate, dts_scenario_provenance(command->scenario));
    double begin = dts_clock_s();
    bool all = strcmp(command->method, "exhaustive") == 0;
    if (!all && strcmp(command->method, "mcmc") != 0) {
        return dts_diag_fail(tool->diag, DTS_USAGE, "use --method mcmc or exhaustive",
                             "--space soap has no method '%s'", command->method);
    }
    dts_soap_options options = {.seed = command->seed,
                                .chains = all ? 0 : command->chains,
                                .proposals = command->proposals,
                                .threads = command->threads,
                                .stop = command->stop};
    dts_tensor_graph graph;
    dts_soap_problem problem;
    dts_soap_outcome outcome;
    dts_status status = make_graph(values, arena, &graph, tool->diag);
    if (status == DTS_OK) {
        status = dts_soap_problem_make(&graph, &values->cluster, &values->stack, &values->training, arena, &problem,
                                       tool->diag);
    }
    if (status == DTS_OK) {
        status = all ? dts_soap_exhaust(&problem, MOST_TRIED, command->stop, arena, &outcome, tool->diag)
                     : dts_soap_search(&problem, &options, arena, &outcome, tool->diag);
    }
    if (status != DTS_OK) {
        return status;
    }
    dts_text text = {0};
    const dts_soap_writing writing = {.style = &tool->style,
                                      .scenario = values->name,
                                      .method = command->method,
                                      .problem = &problem,
                                      .options = &options,
                                      .outcome = &outcome,
                                      .wall_s = command->wall_time ? dts_clock_s() - begin : -1};
    status = command->json ? dts_soap_write_json(&writing, &text) : dts_soap_write_text(&writing, &text);
    status = dts_tool_write_made(tool, status, &text);
    if (status == DTS_OK && command->html_path != NULL) {
        status = dts_soap_write_html(&writing, &text, tool->diag);
        status = status == DTS_OK ? dts_tool_write_file(tool, command->html_path, &text) : status;
    }
    dts_text_free(&text);
    *code = outcome.stopped ? dts_interrupt_exit() : outcome.best.fits ? DTS_EXIT_DONE : DTS_EXIT_NOT_FITTING;
    return status;
}

int dts_search_soap(dts_tool *tool, const dts_soap_command *command) {
    dts_arena *arena = dts_arena_new(DTS_ARENA_UNLIMITED);
    int code = DTS_EXIT_DONE;
    dts_status status = arena == NULL ? dts_diag_nomem(tool->diag) : search(tool, command, arena, &code);
    dts_diag_set_locator(tool->diag, NULL, NULL);
    dts_arena_free(arena);
    return status == DTS_OK ? code : dts_tool_exit(status);
}
