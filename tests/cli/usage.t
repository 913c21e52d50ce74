% The command line itself: help, version, wrong usage. Exit code 2 is for wrong usage.
$ dtsim --version
dtsim 0.1.0
$ dtsim --version -o version.txt
error: unexpected argument '-o'
  help: nothing stands behind --version
[2]
$ dtsim --help | head -3
dtsim: how long will one training iteration take, does it fit in memory, and
what limits it? No GPU is needed to know.
$ dtsim
error: no command given
  help: `dtsim --help` lists all commands
[2]
$ dtsim runn
error: unknown command 'runn'
  help: did you mean 'run'? `dtsim --help` lists all commands
[2]
$ dtsim frobnicate
error: unknown command 'frobnicate'
  help: `dtsim --help` lists all commands
[2]
$ dtsim --frobnicate
error: unknown option '--frobnicate'
  help: `dtsim --help` lists all commands
[2]
$ dtsim run
error: no scenario given
  help: `dtsim list scenarios` names those that come along
[2]
$ dtsim run a.yaml b.yaml
error: unexpected argument 'b.yaml'
  help: one scenario at a time
[2]
$ dtsim run --timelin a.yaml
error: no file and no scenario 'a.yaml'
  help: `dtsim list scenarios` names those that come along
[3]
$ dtsim run --t a.yaml
error: option '--t' is short for several
  help: `dtsim run --help` lists the options
[2]
$ dtsim run --trace
error: option '--trace' needs its value FILE
  help: `dtsim run --help` lists the options
[2]
$ dtsim run --check=yes a.yaml
error: option '--check' takes no value
  help: `dtsim run --help` lists the options
[2]
$ dtsim run -x a.yaml
error: unknown option '-x'
  help: `dtsim run --help` lists the options
[2]
$ dtsim run -o
error: option '-o' needs its value FILE
  help: `dtsim run --help` lists the options
[2]
$ dtsim run --format yaml a.yaml
error: --format: unknown value 'yaml'
  help: there are text, json, csv
[2]
$ dtsim run --width 12 a.yaml
error: --width: 12 is out of bounds
  help: from 40 to 500
[2]
$ dtsim run --width 8o a.yaml
error: --width: '8o' is not a whole number
[2]
$ dtsim run --color sometimes a.yaml
error: --color: unknown value 'sometimes'
  help: there are auto, always, never
[2]
$ dtsim run --charset latin1 a.yaml
error: --charset: unknown value 'latin1'
  help: there are auto, unicode, ascii
[2]
$ dtsim run --set training.micro_batch a.yaml
error: --set: 'training.micro_batch' is not KEY=VALUE
  help: write a dotted key, = and a value: --set training.micro_batch=4
[2]
$ dtsim run --set =4 a.yaml
error: --set: '=4' is not KEY=VALUE
  help: write a dotted key, = and a value: --set training.micro_batch=4
[2]
$ dtsim run --from 3 a.yaml
error: --from: '3' has no unit
  help: write a time such as 5 us or 1.5 ms
[2]
$ dtsim run --from "3 parsec" a.yaml
error: --from: unknown unit 'parsec' in '3 parsec'
  help: write a time such as 5 us or 1.5 ms
[2]
$ dtsim run --timeline --format json a.yaml
error: --timeline is drawn with --format text only
  help: machines read --trace FILE
[2]
$ dtsim list elephants
error: KIND: unknown value 'elephants'
  help: there are models, architectures, graphs, gpus, clusters, stacks, scenarios, schedules, collectives, optimizers, precisions, data-parallel, methods, spaces
[2]
$ dtsim list models gpus
error: unexpected argument 'gpus'
  help: one kind at a time
[2]
$ dtsim show a b
error: unexpected argument 'b'
  help: one name at a time
[2]
$ dtsim show --json-schema rocket
error: --json-schema: unknown value 'rocket'
  help: there are scenario, model, graph, gpu, cluster, stack
[2]
$ dtsim show --json-schema --effective
error: --json-schema goes with no other option
[2]
$ dtsim validate
error: no table given
  help: `dtsim validate --help` says what a table looks like
[2]
$ dtsim validate --format csv t.csv
error: --format: unknown value 'csv'
  help: there are text, json
[2]
$ dtsim run --help | head -1
Usage: dtsim run [OPTION...] SCENARIO
$ dtsim validate --help | head -1
Usage: dtsim validate [OPTION...] TABLE.csv…
$ dtsim list --help | head -1
Usage: dtsim list [OPTION...] [KIND]
$ dtsim show --help | head -1
Usage: dtsim show [OPTION...] [NAME]
% Help of a command, both ways; no page is wider than a window of 80 columns, or has lines of blanks.
$ dtsim help run | head -3
Usage: dtsim run [OPTION...] SCENARIO
Simulates one training iteration: its time, throughput, memory, and what limits
it.
$ dtsim help run >a; dtsim run --help >b; cmp a b && echo same
same
$ dtsim help rocket
error: unknown command 'rocket'
  help: `dtsim --help` lists all commands
[2]
$ for c in run explain sweep map search advise compare schedule validate calibrate list show export import; do dtsim help $c | awk -v c=$c 'length($0) > 79 || /^ +$/ { print c ": " $0 }'; done
% A key that lacks its --set.
$ dtsim run gcp-data-parallel/scaling-ddp cluster.nodes=4; dtsim run gcp-data-parallel/scaling-ddp --micro-batch 4; dtsim explain gcp-data-parallel/scaling-ddp --precision fp8; dtsim run gcp-data-parallel/scaling-ddp --training 4; dtsim run gcp-data-parallel/scaling-ddp --model gpt2
error: unexpected argument 'cluster.nodes=4'
  help: write --set cluster.nodes=4
error: unknown option '--micro-batch'
  help: it is a key: --set training.micro_batch=VALUE
error: unknown option '--precision'
  help: it is a key: --set training.precision=VALUE
error: unknown option '--training'
  help: it is a section: --set training.KEY=VALUE sets one of its keys
error: unknown option '--model'
  help: it is a key: --set model=VALUE
[2]
