#!/usr/bin/env bash
# No text becomes code, from the command's end: hostile strings stand in names of scenarios and files, and in keys and
# values of other tools' files. What is written has the structure that it has for a harmless string, by dtsim itself, by
# bash, and where python3 is there by its parsers of JSON, TOML, YAML and Python.
#
#     tests/cli/hostile-text.sh DTSIM
#
# DTSIM_PROPERTY_RUNS sets how many strings are drawn.
set -euo pipefail
dtsim=$(realpath "$1")
DTSIM_DATA=$(realpath "$(dirname "$0")/../..")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export DTSIM_DATA LC_ALL=C.UTF-8 TERM=dumb
unset COLUMNS
cd "$scratch"
mkdir empty out
RANDOM=1
failed=0
fail() {
    echo "error: $1"
    failed=1
}

# What strings are made of: as it is, and within double quotes of JSON, YAML and TOML.
raw=() escaped=()
part() {
    raw+=("$1")
    escaped+=("${2-$1}")
}
part $'\n' '\n' && part $'\r' '\r' && part $'\t' '\t' && part $'\e[31m' '\u001b[31m' && part $'\a' '\u0007'
part $'\u2028' '\u2028' && part $'\u0085' '\u0085' && part $'\x7f' '\u007f' && part '"' '\"' && part '\' '\\'
part "'" && part "'''" && part '"""' '\"\"\"' && part '`touch P`' && part '$(touch P)' && part '; touch P; ' && part '#' && part ' # '
part ']]' && part '=1+1' && part '+' && part '-' && part '@' && part ': ' && part '- ' && part '!!int ' && part '%' && part '~'
part null && part 1e3 && part yes && part '{a: 1}' && part ', ' && part '<b>' && part ä && part 'kv_heads: 1' && part 'attention_window: 128'
part $'\nkv_heads: 1\n#' '\nkv_heads: 1\n#' && part $'\ntouch P\n#' '\ntouch P\n#' && part '&x' && part '*x'

text='' quoted=''
draw() {
    text='' quoted=''
    local i at
    for ((i = RANDOM % 5; i >= 0; i--)); do
        at=$((RANDOM % ${#raw[@]}))
        text+=${raw[at]} quoted+=${escaped[at]}
    done
}

# single TEXT: a word of a shell
single() {
    printf "'%s'" "${1//\'/\'\\\'\'}"
}

clean() { # FILE: valid UTF-8 without control characters
    if ! iconv -f UTF-8 -t UTF-8 "$1" >/dev/null 2>&1; then
        fail "$1 is no UTF-8"
    elif grep -qP '[\x{0}-\x{8}\x{b}-\x{1f}\x{7f}-\x{9f}\x{2028}\x{2029}]' "$1"; then
        fail "control characters in $1: $(cat -v "$1" | head -3)"
    fi
}

# ---- imports: other tools' files, with a key and a value that may hold anything

# theirs FORMAT: the file with the strings in key and quoted (within double quotes), and key and text as they are
theirs() {
    case $1 in
        huggingface)
            printf '{"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "num_hidden_layers": 32, '
            printf '"num_attention_heads": 32, "intermediate_size": 11008, "x%s": 0, "y": "%s", "x": {"%s": [1]}}' "$quoted" "$quoted" "$quoted"
            ;;
        deepspeed)
            printf '{"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 2, "x%s": 1}, ' "$quoted"
            printf '"bf16": {"enabled": true}, "x%s": "%s"}' "$quoted" "$quoted"
            ;;
        accelerate)
            printf 'compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nnum_machines: 1\nnum_processes: 8\n'
            printf 'mixed_precision: bf16\n"x%s": "%s"\n' "$quoted" "$quoted"
            ;;
        trainer)
            printf 'per_device_train_batch_size: 2\ngradient_accumulation_steps: 4\nbf16: true\n"x%s": "%s"\n' "$quoted" "$quoted"
            printf 'output_dir: "%s"\n' "$quoted"
            ;;
        torchtitan-toml)
            local one=${text//[\'$'\n\r\u0085\u2028']/}
            printf "[training]\nlocal_batch_size = 2\nseq_len = 1024\n[parallelism]\ntensor_parallel_degree = 2\n"
            printf "[job]\nx = '%s' # %s\n[other]\ny = '%s'\n" "$one" "$one" "$one"
            ;;
        megatron-lm)
            printf 'SAVE=%s\ntorchrun --nnodes 1 --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size 2 ' "$(single "$text")"
            printf -- '--micro-batch-size 2 --global-batch-size 64 --seq-length 1024 --bf16 --save %s --x%s "$SAVE"\n' "$(single "$text")" "$(single "$text")"
            ;;
    esac
}

# import FORMAT OUT: into a scenario or a profile
import() {
    local options=(--set cluster=dgx-h100 --set model=gpt2 --set training.global_batch=64 --set training.micro_batch=2)
    options+=(--set training.sequence_length=1024)
    [ "$1" != huggingface ] || options=()
    theirs "$1" >theirs.yaml
    "$dtsim" import theirs.yaml --from "$1" "${options[@]}" -o "$2" 2>messages
}

check_import() {
    if ! import "$1" "out/$1.yaml"; then
        fail "import of $1 with '$quoted': $(cat messages)"
        return
    fi
    clean "out/$1.yaml"
    clean messages
    if ! cmp -s <(grep -v '^#' "out/$1.yaml") "plain-$1"; then
        fail "import of $1 with '$quoted' is another scenario: $(diff <(grep -v '^#' "out/$1.yaml") "plain-$1")"
    fi
}

# ---- exports: launchers' files of a scenario whose name may hold anything

plan='model: {profile: gpt, layers: 12, hidden: 768, heads: 12, vocab: 50304}
cluster: {profile: dgx-a100-80gb, nodes: 2, gpus_per_node: 8}
stack: pytorch-2
training: {global_batch: 64, micro_batch: 2, sequence_length: 1024, precision: bf16, optimizer: adamw}
parallelism: {tensor: 2, data_parallel: ddp}'
launchers=(megatron-lm torchtitan torchtitan-cli torchtitan-toml accelerate torchrun deepspeed)

# obeyed SCRIPT: the words that bash gives to torchrun, in an empty folder, where nothing else can be run
obeyed() {
    (cd empty && PATH=/nowhere /bin/bash -c 'torchrun() { printf "%q\n" "$@"; }; script=$1; shift; . "$script"' - "../$1" 2>&1)
}

export_all() { # FILE FOLDER
    mkdir -p "$2"
    for launcher in "${launchers[@]}"; do
        "$dtsim" export "$1" --to "$launcher" -o "$2/$launcher" 2>>messages || rm -f "$2/$launcher"
    done
}

check_exports() { # FILE
    rm -rf exported
    export_all "$1" exported
    for launcher in "${launchers[@]}"; do
        [ -e "usual/$launcher" ] || continue
        clean "exported/$launcher"
        if ! cmp -s <(grep -v '^#' "exported/$launcher") <(grep -v '^#' "usual/$launcher"); then
            fail "export to $launcher of '$1', named '$quoted', is another plan"
        fi
    done
    for script in megatron-lm torchrun torchtitan-cli; do
        if [ "$(obeyed "exported/$script")" != "$(obeyed "usual/$script")" ] || [ -n "$(ls -A empty)" ]; then
            fail "bash runs something else in the $script of a scenario that is named '$quoted'"
        fi
    done
    copies+=("$PWD/kept/$count") && mkdir -p kept && mv exported "kept/$count"
}

# check_refused: a name with a control character is an error that says where
check_refused() {
    if "$dtsim" run named.yaml >output 2>messages || ! grep -q '^named.yaml:1:7: error: a .*, in text' messages; then
        fail "the name '$quoted' is not refused: $(cat messages)"
    fi
    clean messages
}

quoted=harmless text=harmless
formats=(huggingface deepspeed accelerate trainer torchtitan-toml megatron-lm)
for format in "${formats[@]}"; do
    import "$format" plain || fail "import of a harmless $format: $(cat messages)"
    grep -v '^#' plain >"plain-$format"
done
printf 'name: harmless\n%s\n' "$plan" >named.yaml
export_all named.yaml usual
copies=() count=0 refused=0
for ((run = 0; run < ${DTSIM_PROPERTY_RUNS:-8}; run++)); do
    case $run in # one that is taken and one that is refused, however few are drawn
        0) text='=1+1 `touch P` # "x"' quoted='=1+1 `touch P` # \"x\"' ;;
        1) text=$'x\ntouch P\n#' quoted='x\ntouch P\n#' ;;
        *) draw ;;
    esac
    for format in "${formats[@]}"; do
        check_import "$format"
    done
    printf 'name: "%s"\n%s\n' "$quoted" "$plan" >named.yaml
    printf '%s' "$text" >given
    if grep -qzP '[\x{0}-\x{1f}\x{7f}-\x{9f}\x{2028}\x{2029}]' given; then
        check_refused
        refused=$((refused + 1))
    else
        count=$((count + 1))
        check_exports named.yaml
        for format in csv json; do
            "$dtsim" run named.yaml --format $format >"kept/$count.$format"
        done
        printf '%s' "$text" >"kept/$count.name"
    fi
done

# ---- names of files, which nothing refuses

for name in $'a\e]0;title\a\e[31m\xff.yaml' $'=x\nkv_heads: 1\n#\u2028.yaml' $'"\'`touch P`$(touch P)<b>.yaml'; do
    printf '%s\n' "$plan" >"$name"
    "$dtsim" run "./$name" --html page.html --trace trace.json >text 2>messages || fail "run of $(printf %q "$name")"
    "$dtsim" run "./$name" --format json >result.json
    "$dtsim" run "./$name" --format csv >result.csv
    "$dtsim" run "./$name" --dump dump >>text 2>>messages
    "$dtsim" sweep "./$name" --vary training.micro_batch=1,2 --format csv >sweep.csv 2>>messages
    "$dtsim" sweep "./$name" --vary training.micro_batch=1,2 --format svg >sweep.svg 2>>messages
    "$dtsim" explain "./$name" >>text 2>>messages
    "$dtsim" show "./$name" --effective >>text 2>>messages
    "$dtsim" show "./$name" >shown.yaml 2>>messages
    "$dtsim" run "./$name" --set nothing=1 >>text 2>>messages || true
    "$dtsim" run "no$name" >>text 2>>messages || true
    for file in text messages page.html trace.json result.json result.csv shown.yaml dump/* sweep.csv sweep.svg; do
        clean $file
    done
    [ "$("$dtsim" run shown.yaml --format json | grep iteration_time)" = "$(grep iteration_time result.json)" ] ||
        fail "what is shown of $(printf %q "$name") is another scenario"
    tail -1 result.csv | grep -q '^"*[-=+@]' && fail "a formula in CSV: $(tail -1 result.csv)"
    quoted=$name
    check_exports "./$name"
    count=$((count + 1))
done

mkdir -p data/scenarios
ln -s "$DTSIM_DATA"/{hardware,models} data
printf '%s\n' "$plan" >data/scenarios/$'a\e[31m\n.yaml'
DTSIM_DATA=data "$dtsim" list scenarios >text || fail "list of a scenario with a hostile name"
clean text

# ---- tables: ids that are formulas are read as they were written

printf 'id,source,model,cluster,stack,training.global_batch,training.micro_batch,training.sequence_length,measured.iteration_s\n' >t.csv
printf '"\x27=1+1,""x""","=SUM",mingpt-large,gcp-a2-highgpu-8g,pytorch-1.11,64,8,256,0.4\n' >>t.csv
"$dtsim" validate t.csv --record record.csv >text 2>messages || fail "validate: $(cat messages)"
grep -qF ",\"'=1+1,\"\"x\"\"\",'=SUM" record.csv || fail "a formula in a record: $(cat record.csv)"
"$dtsim" run 't.csv#=1+1,"x"' --format json | grep -q '"=1+1,\\"x\\""' || fail "an id that is a formula is not found"
grep -q '=1+1,"x"' text || fail "an id is shown with the apostrophe of a spreadsheet"

# ---- other parsers

if command -v python3 >/dev/null; then
    python3 - "${copies[@]}" <<'PYTHON' || failed=1
import ast, csv, json, pathlib, sys
try:
    import tomllib
except ImportError:
    tomllib = None
try:
    import yaml
except ImportError:
    yaml = None

usual, bad = pathlib.Path("usual"), 0
def same(what, one, other):
    global bad
    if one != other:
        print("error:", what, "differs:", one, other)
        bad = 1
parsers = {"torchtitan": lambda text: ast.dump(ast.parse(text)), "deepspeed": json.loads}
if tomllib:
    parsers["torchtitan-toml"] = tomllib.loads
if yaml:
    parsers["accelerate"] = yaml.safe_load
for folder in map(pathlib.Path, sys.argv[1:]):
    for name, parse in parsers.items():
        if (usual / name).exists():
            same(folder / name, parse((folder / name).read_text()), parse((usual / name).read_text()))
for file in pathlib.Path("kept").glob("*.name"):
    name = file.read_bytes().decode()
    same(file, json.loads(file.with_suffix(".json").read_text())["scenario"], name)
    cell = list(csv.reader(file.with_suffix(".csv").open(newline="")))[1][0]
    same(file, cell[1:] if cell[:1] == "'" and cell[1:].lstrip("'")[:1] in tuple("=+-@\t") else cell, name)
json.load(open("result.json"))
json.load(open("trace.json"))
for file in pathlib.Path("out").glob("*.yaml"):
    if yaml:
        same(file, list(yaml.safe_load(file.read_text())), list(yaml.safe_load(pathlib.Path("plain-" + file.stem).read_text())))
sys.exit(bad)
PYTHON
fi
exit $failed
