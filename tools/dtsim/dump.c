#include "dump.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "report/report.h"

static dts_status write_text(dts_tool *tool, const char *folder, const char *name, const dts_text *text) {
    const char *path = dts_arena_printf(tool->arena, "%s/%s", folder, name);
    return path != NULL ? dts_tool_write_file(tool, path, text) : dts_diag_nomem(tool->diag);
}

dts_status dts_dump_scenario(dts_tool *tool, const char *folder, const dts_scenario *scenario) {
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        return dts_diag_fail(tool->diag, DTS_IO, NULL, "cannot make the folder %s: %s", folder, strerror(errno));
    }
    dts_text text = {0};
    dts_node_write_block(dts_scenario_tree(scenario), &text);
    dts_status status = write_text(tool, folder, "1-document.yaml", &text);
    if (status == DTS_OK) {
        dts_text_clear(&text);
        dts_schema_write_yaml(&dts_scenario_schema, dts_scenario_get(scenario), dts_scenario_provenance(scenario), true,
                              &text);
        status = write_text(tool, folder, "2-scenario.yaml", &text);
    }
    dts_text_free(&text);
    return status;
}

dts_status dts_dump_result(dts_tool *tool, const char *folder, const dts_result *result) {
    dts_text text = {0};
    dts_status status = dts_report_graph(result, &text) == DTS_OK ? DTS_OK : dts_diag_nomem(tool->diag);
    status = status == DTS_OK ? write_text(tool, folder, "3-graph.csv", &text) : status;
    if (status == DTS_OK) {
        dts_text_clear(&text);
        const dts_report_options options = {.wall_time = false};
        status = dts_report_json(result, &options, &text) == DTS_OK ? DTS_OK : dts_diag_nomem(tool->diag);
    }
    status = status == DTS_OK ? write_text(tool, folder, "4-result.json", &text) : status;
    dts_text_free(&text);
    return status;
}
