/* Scripts are read as bash runs them: the arguments of the last command are the same. What they hang on that is not in
 * the script is said. One bash runs all of them. */
#include <unistd.h>

#include "check.h"
#include "interop/inside.h"

enum { LONGEST = 4096, SCRIPTS_MOST = 200 };

/* Each ends in `torchrun --n …`; all is decided in them. */
static const char *const decided[] = {
    /* numbers */
    "A=4 B=2\nN=$((64 / (A * B)))\ntorchrun --n $N",
    "W=16\ntorchrun --n $(( $W % 5 + ${W} / 3 ))",
    "N=3\n((N*=2))\n((N++))\nlet N+=1 \"N = N << 2\"\ntorchrun --n $N",
    "declare -i N=3*4\nN+=1\ntorchrun --n $N",
    "N=010\ntorchrun --n $((N))$((0x1F))$((2#101))",
    "A=1+2\ntorchrun --n $((A*2)) $(($A*2))",
    "A=5\ntorchrun --n $((A > 3 ? 12 : 24)) $(( (A = 7) + A )) $A",
    "torchrun --n $(expr 4 \\* 3 + 010) $((-7 / 2)) $((-7 % 3))",
    "N=2; N=$((N * $((N + 1))))\ntorchrun --n $N",
    "N=8\ntorchrun --n $(( \"$N\" * 2 ))",
    /* conditions */
    "SIZE=small\nif [ $SIZE = small ]; then\nN=12\nelse\nN=24\nfi\ntorchrun --n $N",
    "S=b; if [ \"$S\" == a ]; then N=1; elif [[ $S == b ]]; then N=2; else N=3; fi; torchrun --n $N",
    "N=24; [ -z \"$N\" ] && N=12\ntorchrun --n $N",
    "N=\n[ -z \"$N\" ] && N=12\ntorchrun --n $N",
    "N=24; [ -n \"$N\" ] || N=12; [ $N -gt 20 ] && [ $N -le 24 ] && N=5; torchrun --n $N",
    "N=4; if ! [ $N -eq 4 ]; then N=5; fi; if [ ! $N -lt 3 -a $N -ne 7 ]; then N=$((N+1)); fi; torchrun --n $N",
    ("M=llama-8b; if [[ $M == *8b* && ! $M =~ x && -n $M ]]; then :; fi; if [[ $M == *8b* ]]; then N=1; fi\ntorchrun "
     "--n $N"),
    "M='*'; N=1; [[ abc == \"$M\" ]] && N=2; [[ abc == $M ]] && N=3; torchrun --n $N",
    "if (( 3 > 2 )); then N=1; else N=2; fi; torchrun --n $N",
    "A=3; (( A == 3 )) || { N=9; exit 1; }\nN=${N:-4}; torchrun --n $N",
    "case 7b in 13b) N=1;; 7b|8b) N=2;; *) N=3;; esac; torchrun --n $N",
    "S=70B\ncase \"$S\" in\n  7[bB]) N=1 ;;\n  (7*) N=2 ;; # so\n  *) N=3\nesac\ntorchrun --n $N",
    "case a in a) N=1;;& b) N=${N}2;; [a-c]) N=${N}3;; *) N=4;; esac; torchrun --n $N",
    "case x in a) N=1; exit;; *) N=2;; esac; torchrun --n $N",
    "case a in a) N=1;& b) N=${N}2;; c) N=3;; esac; torchrun --n $N",
    "if true; then if false; then N=1; else N=2; fi; else N=3; fi; torchrun --n $N",
    "[ 08 -eq 8 ] && N=1; [ \"\" ] || N=${N}2; [ a \\< b ] && N=${N}3; test 3 = 3 && N=${N}4; torchrun --n $N",
    "[[ 2+1 -eq 3 ]] && N=1; [[ a < b ]] && N=${N}2; [[ ( a == b || 1 -lt 2 ) && x != y ]] && N=${N}3; torchrun --n $N",
    "A=1; [ $A = 2 ] && N=1 || N=2; torchrun --n $N",
    /* loops */
    "N=0; for i in 1 2 3; do N=$((N + i)); done; torchrun --n $N",
    "for N in 12 24; do torchrun --n $N; done",
    "N=1; while [ $N -lt 50 ]; do N=$((N * 2)); done; torchrun --n $N",
    "N=9; until [ $N -le 4 ]; do ((N-=2)); done; torchrun --n $N",
    "for ((i = 0, N = 1; i < 5; i++)); do N=$((N * 2)); done; torchrun --n $N $i",
    "N=; for i in 1 2 3 4; do [ $i = 2 ] && continue; [ $i = 4 ] && break; N=$N$i; done; torchrun --n $N",
    "L=(a b c); for x in \"${L[@]}\"; do N+=$x; done; torchrun --n $N ${#L[@]} ${L[1]} ${L[-1]}",
    "N=5; for i in; do N=6; done; torchrun --n $N",
    "N=1; while false; do N=2; done; torchrun --n $N",
    "N=; for i in 1 2; do for j in 1 2 3; do N=$N$i$j; done; done; torchrun --n $N",
    /* functions, subshells, here-documents, pipelines */
    "N=24; f() { N=12; }\ntorchrun --n $N",
    "f() { N=12; }\nf\ntorchrun --n $N",
    "function f { local N=5; M=$N; }\nN=1; f; torchrun --n $N $M",
    "f() { torchrun --n $1 $# \"${@:-x}\" $2; }; f 4 5",
    "f() { [ $1 = a ] && return; N=7; }; N=1; f a; torchrun --n $N",
    "f() { shift; N=$1; }; f 4 5; torchrun --n $N",
    "f() {\n  case $1 in\n  a) echo hi ;;\n  esac\n}\nN=3; f a; torchrun --n $N",
    "N=24; ( N=12; cd / ); torchrun --n $N",
    "N=24; cat >/dev/null <<EOF\nN=12\nEOF\ntorchrun --n $N",
    "N=24; cat >/dev/null <<-'END'; M=3\n\tN=12\n\tEND\ntorchrun --n $N $M",
    "N=24; echo x | N=12; echo x | while read y; do N=13; done; torchrun --n $N",
    "N=24; { N=12; M=4; }; torchrun --n $N",
    "N=24; N=12 true; torchrun --n $N",
    "A=1 B=$A; torchrun --n $A$B",
    "set -- a b c; shift; torchrun --n $1 $#",
    "N=3; eval \"N=4; M='x y'\"; torchrun --n $N $M",
    "N=3; unset N; torchrun --n ${N:-5}",
    "N=7; (exit 3); true & torchrun --n $N",
    "exec 3>&1\nN=7; echo a >/dev/null 2>&1; torchrun --n $N 2>&1",
    "N=7; torchrun --n $N >&1 2> /dev/null",
    "N=1\nif true; then N=2; fi >/dev/null\nfor i in 1; do N=3; done < /dev/null\ntorchrun --n $N",
    "N=4; torchrun --n $N; exit 0; torchrun --n 5",
    "if [ 1 = 1 ]; then torchrun --n 1; else torchrun --n 2; fi",
    "N=1; true && N=2 || N=3; false || N=${N}4; torchrun --n $N",
    "[ 1 -eq 2 ] ||\n  N=3\ntorchrun --n $N",
    /* forms of variables */
    "M=1; torchrun --n ${M:+12} ${M+13} x${E:+1}x ${M:-3} ${E:-4} ${E-5}",
    "M=; torchrun --n x${M:+12} ${M+13} ${M:-3} x${M-4} ${#M}",
    "torchrun --n ${M:=12} $M ${#M}",
    ": \"${M:=2}\"\ntorchrun --n $M",
    "M=llama-3-8b.yaml; torchrun --n ${M%.yaml} ${M%-*} ${M%%-*} ${M#*-} ${M##*-} ${M/-/_} ${M//-/_} ${M//-}",
    "M=Llama; torchrun --n ${M,,} ${M^^} ${M:1} ${M:1:2} ${M:(-2)} ${M: -3:2} ${M^} ${M,}",
    "M=\"a  b\"; torchrun --n \"$M\" $M 'x' \"x${M}y\"",
    "A=(1 \"2 3\"); A+=(4); torchrun --n ${#A[@]} \"${A[@]}\" ${A[1]} $A \"${A[*]}\"",
    "A=(); torchrun --n \"${A[@]}\" ${#A[@]}",
    "A=\"x 1\"; A+=\" y\"; A=\"$A z\"; torchrun --n $A",
    "torchrun --n a\\ b \"c\\\"d\" 'e'\\''f' $'g\\'h' \"i\\\nj\" k\\\nl \"m\\n\"",
    "export A=1 B=\"2 3\"; readonly C=$A; declare -a D=(4 5); torchrun --n $A $B $C ${D[@]}",
    "N=${X:-${Y:-$((3 + 4))}}; torchrun --n $N",
    "N=${X:-\"a b\"}; M=\"${X:-c d}\"; torchrun --n $N $M",
    "A=5 # B=6\n#A=7\ntorchrun --n $A # --n 3",
    "torchrun \\\n  --n 4 \\\n  5",
    "A=x; torchrun --n $A-1 ${A}_2 $A.3",
};
enum { DECIDED = sizeof decided / sizeof decided[0] };

static dts_status read_script(const char *script, dts_settings *out, dts_diag *diag) {
    return dts_read_shell(script, strlen(script), "run.sh", out, diag);
}

static void what_bash_runs_is_read(void **state) {
    (void)state;
    char name[] = "/tmp/dtsim-scripts-XXXXXX", command[128];
    const int descriptor = mkstemp(name);
    FILE *file = descriptor < 0 ? NULL : fdopen(descriptor, "w");
    assert_non_null(file);
    fputs("unset N M X Y E\ntorchrun() { shift; last=\"$*\"; printf '%s\\n' \"${*:-true}\"; }\n", file);
    for (size_t i = 0; i < DECIDED; i++) {
        fprintf(file, "(\n%s\n) 2>/dev/null\necho ==\n", decided[i]);
    }
    assert_int_equal(fclose(file), 0);
    snprintf(command, sizeof command, "bash %s 2>&1", name);
    FILE *bash = popen(command, "r");
    assert_non_null(bash);
    int wrong = 0;
    for (size_t i = 0; i < DECIDED; i++) {
        char line[LONGEST], want[LONGEST] = "nothing\n";
        while (fgets(line, sizeof line, bash) != NULL && strcmp(line, "==\n") != 0) {
            memcpy(want, line, sizeof line);
        }
        want[strcspn(want, "\n")] = '\0';
        dts_settings out = {.arena = dts_arena_new(DTS_ARENA_UNLIMITED)};
        dts_diag *diag = dts_diag_new();
        const dts_status status = read_script(decided[i], &out, diag);
        const dts_setting *n = status == DTS_OK ? dts_settings_find(&out, "n") : NULL;
        if (n == NULL || strcmp(n->value, want) != 0 || n->doubts != NULL || dts_diag_count(diag) > 0) {
            wrong++;
            print_error("%s\n  bash: %s\n  here: %s%s%s\n", decided[i], want, n != NULL ? n->value : "no flag",
                        n != NULL && n->doubts != NULL ? ", in doubt: " : "",
                        n != NULL && n->doubts != NULL ? n->doubts->text : "");
        }
        dts_diag_free(diag);
        dts_arena_free(out.arena);
    }
    pclose(bash);
    remove(name);
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_bash_runs_is_read)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
