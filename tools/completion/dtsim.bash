# Completion of dtsim for bash: commands, options, and names of scenarios, profiles and schedules, which it asks
# `dtsim list` for.

_dtsim_names() {
    dtsim list "$1" --format names 2>/dev/null
}

# The values that option $1 of command $2 can take; fails when it takes none that can be listed.
_dtsim_values() {
    case $1 in
        --format)
            case $2 in
                run) echo text json csv ;;
                sweep) echo text csv json svg ;;
                map) echo text json svg ;;
                explain | compare | search | advise) echo text json ;;
                schedule) echo text table json csv torch-csv svg ;;
                validate | calibrate) echo text json ;;
                list) echo text json names ;;
            esac
            ;;
        --metric) echo time memory both ;;
        --objective) echo time cost memory throughput-per-dollar ;;
        --method) _dtsim_names methods ;;
        --clusters) _dtsim_names clusters ;;
        --space) _dtsim_names spaces ;;
        --to | --export)
            [ "$2" != run ] || return 1
            echo megatron-lm deepspeed accelerate torchtitan torchtitan-cli torchtitan-toml torchrun
            ;;
        --from)
            [ "$2" = import ] || return 1
            echo auto huggingface megatron-lm deepspeed accelerate torchtitan-cli torchtitan-toml trainer
            ;;
        --scenario) _dtsim_names scenarios ;;
        --color) echo auto always never ;;
        --charset) echo auto unicode ascii ;;
        *) return 1 ;;
    esac
}

_dtsim_options() {
    local common='--output --color --width --charset --help'
    case $1 in
        run) echo "--set --tokens --format --timeline --from --to --trace --html --dump --check --no-hints --wall-time $common" ;;
        sweep) echo "--vary --set --store --threads --format --html $common" ;;
        advise) echo "--set --threads --format --html $common" ;;
        map) echo "--across --down --panels --best-of --set --threads --format --html $common" ;;
        explain) echo "--set --tokens --format --html --rows --inputs --no-what-if --threads $common" ;;
        compare) echo "--set --tokens --with --rows --threads --format --html $common" ;;
        search)
            echo "--export --over --set --objective --space --method --simulate --seed --chains --proposals --top --store" \
                "--threads --format --html --wall-time --tokens --clusters --nodes --price --deadline --budget $common"
            ;;
        schedule)
            echo "--stages --microbatches --chunks --group --flushes --forward --backward-input --backward-weight --latency" \
                "--input-frees --memory --html --format $common"
            ;;
        validate) echo "--set --by --worst --record --threads --format $common" ;;
        calibrate) echo "--fit --set --where --metric --folds --by --profile --format --threads $common" ;;
        list) echo "--format $common" ;;
        show) echo "--effective --set --json-schema --reference $common" ;;
        export) echo "--to --set $common" ;;
        import) echo "--from --scenario --set $common" ;;
    esac
}

# What may stand where no option stands.
_dtsim_arguments() {
    case $1 in
        run | explain | sweep | map | search | advise | compare | export) _dtsim_names scenarios ;;
        schedule) _dtsim_names schedules ;;
        list) dtsim list --format names 2>/dev/null ;;
        show)
            _dtsim_names scenarios
            local kind
            for kind in models gpus clusters stacks; do
                _dtsim_names "$kind"
            done
            ;;
    esac
}

_dtsim() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} values
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W 'run explain sweep map search advise compare schedule validate calibrate list show export import --help --version' -- "$word")
        return
    fi
    if [ "$word" = = ]; then # --format=…
        word=''
    elif [ "$before" = = ]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    case $before in
        --output | -o | --profile | --dump | --trace | --html | --store)
            mapfile -t COMPREPLY < <(compgen -f -- "$word")
            return
            ;;
    esac
    if values=$(_dtsim_values "$before" "$command"); then
        mapfile -t COMPREPLY < <(compgen -W "$values" -- "$word")
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_dtsim_options "$command")" -- "$word")
    else
        mapfile -t COMPREPLY < <(
            compgen -W "$(_dtsim_arguments "$command")" -- "$word"
            case $command in
                run | explain | sweep | map | search | advise | compare | show | validate | calibrate | export | import) compgen -f -- "$word" ;;
            esac
        )
    fi
}

complete -o filenames -F _dtsim dtsim
