% The manual page and the completion know every command and every option.
$ commands=$(dtsim --help | sed -nE '/^Commands:/,/^$/s/^  ([a-z]+) .*/\1/p'); echo $commands
run explain sweep map search advise compare schedule validate calibrate list show export import
$ for c in $(dtsim --help | sed -nE '/^Commands:/,/^$/s/^  ([a-z]+) .*/\1/p'); do for o in $(dtsim $c --help | grep -oE '^ +(-., +)?--[a-z-]+' | grep -oE -- '--[a-z-]+'); do for f in docs/dtsim.1 tools/completion/dtsim.bash; do tr -d '\\' <$DATA/$f | grep -q -- "$o" || echo "$f does not know $c $o"; done; done; done
% Completion as bash would ask for it.
$ printf '. %s/tools/completion/dtsim.bash\nask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _dtsim; printf "%%s " "${COMPREPLY[@]}"; echo; }\n' $DATA >ask.sh
$ . ./ask.sh; ask dtsim r; ask dtsim s
run 
sweep search schedule show 
$ . ./ask.sh; ask dtsim run --ti; ask dtsim run --format js; ask dtsim run --format = c; ask dtsim show gpt2-
--timeline 
json 
csv 
gpt2-large gpt2-medium gpt2-xl 
$ . ./ask.sh; ask dtsim run gcp-data-parallel/scaling; ask dtsim schedule 1f; ask dtsim list mo
gcp-data-parallel/scaling-ddp gcp-data-parallel/scaling-fsdp gcp-data-parallel/scaling-pdp 
1f1b 1f1b-v 
models 
$ . ./ask.sh; touch some-table.csv; ask dtsim validate some
some-table.csv 
