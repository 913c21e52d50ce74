/* A program against the installed library, as a user would write it: prints the iteration time of one scenario.
 *
 *     example DATA-FOLDER SCENARIO */
#include <dtsim.h>
#include <stdio.h>

int main(int argc, char **argv) {
    if (argc != 3) {
        fputs("usage: example DATA-FOLDER SCENARIO\n", stderr);
        return 2;
    }
    const char *const folders[] = {argv[1]};
    const dts_request request = {.scenario = argv[2], .folders = folders, .folder_count = 1};
    dts_prediction *prediction = NULL;
    const int status = dts_predict(&request, &prediction);
    fputs(dts_prediction_messages(prediction), stderr);
    if (status == DTS_PREDICTED) {
        printf("iteration time %g s\n", dts_prediction_number(prediction, "iteration_time_s"));
    }
    dts_prediction_free(prediction);
    return status;
}
