#include <inttypes.h>

#include "base/quote.h"
#include "report/fields.h"
#include "report/report.h"

static void add_cell(const dts_report_field *field, const dts_result *result, dts_text *out) {
    const void *at = (const char *)result + field->offset;
    char buffer[32];
    switch (field->type) {
        case DTS_REPORT_NUMBER:
            dts_report_number(*(const double *)at, "", buffer);
            dts_text_add(out, buffer);
            break;
        case DTS_REPORT_INTEGER:
            dts_text_printf(out, "%" PRId64, *(const int64_t *)at);
            break;
        case DTS_REPORT_UINT:
            dts_text_printf(out, "%" PRIu64, *(const uint64_t *)at);
            break;
        case DTS_REPORT_FLAG:
            dts_text_add(out, *(const bool *)at ? "true" : "false");
            break;
        case DTS_REPORT_STRING:
            dts_text_add_cell(out, *(const char *const *)at);
            break;
    }
}

dts_status dts_report_csv(const dts_result *result, const dts_report_options *options, dts_text *out) {
    (void)options;
    const dts_report_fields *fields = &dts_result_fields;
    for (size_t i = 0; i < fields->count; i++) {
        const dts_report_field *field = &fields->items[i];
        dts_text_printf(out, "%s%s%s%s", i > 0 ? "," : "", field->group != NULL ? field->group : "",
                        field->group != NULL ? "." : "", field->name);
    }
    dts_text_add(out, "\n");
    for (size_t i = 0; i < fields->count; i++) {
        dts_text_add(out, i > 0 ? "," : "");
        add_cell(&fields->items[i], result, out);
    }
    dts_text_add(out, "\n");
    return dts_text_status(out);
}
