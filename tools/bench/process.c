/* How long a whole process takes, from the fork to its end: what a user waits for. */
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

extern char **environ;

/* Runs the program once. False: it did not start, or did not exit with 0. */
static bool run_once(char *program, char *scenario, double *seconds) {
    char run[] = "run";
    char *arguments[] = {program, run, scenario, NULL};
    posix_spawn_file_actions_t actions;
    if (posix_spawn_file_actions_init(&actions) != 0) {
        return false;
    }
    pid_t child;
    int status = -1;
    double begin = bench_wall_s();
    bool good = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0) == 0 &&
                posix_spawn(&child, program, &actions, NULL, arguments, environ) == 0 &&
                waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    *seconds = bench_wall_s() - begin;
    posix_spawn_file_actions_destroy(&actions);
    return good;
}

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

bool bench_process(char *program, char *scenario, size_t runs, bench_process_result *result) {
    double *seconds = malloc(runs * sizeof *seconds);
    bool good = seconds != NULL;
    for (size_t i = 0; i < runs && good; i++) {
        good = run_once(program, scenario, &seconds[i]);
    }
    if (good) {
        qsort(seconds, runs, sizeof *seconds, compare_doubles);
        *result = (bench_process_result){runs, seconds[0], (seconds[(runs - 1) / 2] + seconds[runs / 2]) / 2};
    }
    free(seconds);
    return good;
}
