#include "report/report.h"

const dts_report_format dts_report_formats[] = {
    {"text", "a page for people", dts_report_text, true},
    {"json", "everything but the timeline, for scripts", dts_report_json, true},
    {"csv", "one header and one row, for spreadsheets", dts_report_csv, false},
};
const size_t dts_report_format_count = sizeof dts_report_formats / sizeof dts_report_formats[0];
