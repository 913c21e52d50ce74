#include "dump.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report/report.h"

enum { PATH_MOST = 4096 };
enum { DOCUMENT, SCENARIO, GRAPH, RESULT, HOPS };

static const char *const names[HOPS] = {"1-document.yaml", "2-scenario.yaml", "3-graph.csv", "4-result.json"};

static dts_status write_text(dts_tool *tool, const char *folder, int hop, const dts_text *text) {
    const char *path = dts_arena_printf(tool->arena, "%s/%s", folder, names[hop]);
    return path != NULL ? dts_tool_write_file(tool, path, text) : dts_diag_nomem(tool->diag);
}

/* A simulation of minutes does not end at a file of its result that cannot be written. */
static dts_status make_room(dts_tool *tool, const char *folder) {
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        return dts_diag_fail(tool->diag, DTS_IO, NULL, "cannot make the folder %s: %s", folder, strerror(errno));
    }
    for (int i = 0; i < HOPS; i++) {
        const char *path = dts_arena_printf(tool->arena, "%s/%s", folder, names[i]);
        const dts_status status = path != NULL ? dts_tool_writable(tool, path) : dts_diag_nomem(tool->diag);
        if (status != DTS_OK) {
            return status;
        }
    }
    return DTS_OK;
}

static dts_status write_scenario(dts_tool *tool, const char *folder, const dts_scenario *scenario) {
    dts_text text = {0};
    dts_node_write_block(dts_scenario_tree(scenario), &text);
    dts_status status = write_text(tool, folder, DOCUMENT, &text);
    if (status == DTS_OK) {
        dts_text_clear(&text);
        dts_schema_write_yaml(&dts_scenario_schema, dts_scenario_get(scenario), dts_scenario_provenance(scenario), true,
                              &text);
        status = write_text(tool, folder, SCENARIO, &text);
    }
    dts_text_free(&text);
    return status;
}

/* Errors of a diagnosis of our own. */
static void pass_on(dts_tool *tool, const dts_diag *said) {
    for (size_t i = 0; i < (said == NULL ? 0 : dts_diag_count(said)); i++) {
        const dts_message *m = dts_diag_get(said, i);
        if (m->severity == DTS_ERROR) {
            dts_diag_error(tool->diag, &m->place, m->key, m->help, "%s", m->text);
        }
    }
}

/* What is dumped can be run where it lies. */
dts_status dts_dump_scenario(dts_tool *tool, const char *folder, const dts_scenario *scenario) {
    char current[PATH_MOST];
    if (getcwd(current, sizeof current) == NULL) {
        return dts_diag_fail(tool->diag, DTS_IO, NULL, "cannot tell the current folder: %s", strerror(errno));
    }
    dts_scenario *settled = NULL;
    dts_diag *said = dts_diag_new(); /* the warnings have been given */
    dts_status status = make_room(tool, folder);
    if (status == DTS_OK) {
        status = said == NULL ? DTS_NOMEM : dts_scenario_settle(scenario, current, &tool->profiles, &settled, said);
        if (status == DTS_OK) {
            status = write_scenario(tool, folder, settled);
        } else {
            pass_on(tool, said);
            dts_diag_fail(tool->diag, status, NULL, "cannot write the scenario to %s", folder);
        }
    }
    dts_scenario_free(settled);
    dts_diag_free(said);
    return status;
}

dts_status dts_dump_result(dts_tool *tool, const char *folder, const dts_result *result) {
    dts_text text = {0};
    dts_status status = dts_report_graph(result, &text) == DTS_OK ? DTS_OK : dts_diag_nomem(tool->diag);
    status = status == DTS_OK ? write_text(tool, folder, GRAPH, &text) : status;
    if (status == DTS_OK) {
        dts_text_clear(&text);
        const dts_report_options options = {.wall_time = false};
        status = dts_report_json(result, &options, &text) == DTS_OK ? DTS_OK : dts_diag_nomem(tool->diag);
    }
    status = status == DTS_OK ? write_text(tool, folder, RESULT, &text) : status;
    dts_text_free(&text);
    return status;
}
