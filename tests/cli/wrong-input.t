% Wrong scenarios: every error with its place, its key and the way out. Exit code 1, or 3 when a file cannot be read.
$ dtsim run no-such-scenario
error: no file and no scenario 'no-such-scenario'
  help: `dtsim list scenarios` names those that come along
[3]
$ dtsim run gcp-data-parallel/scaling-ddp --set training.micro_bacth=4
--set: error: unknown key 'micro_bacth' [training]
  help: did you mean 'micro_batch'?
[1]
$ dtsim run gcp-data-parallel/scaling-ddp --set training.micro_batch=many
--set: error: expected a whole number, got 'many' [training.micro_batch]
  help: write a whole number such as 8
[1]
$ dtsim run gcp-data-parallel/scaling-ddp --set training.micro_batch=-4
--set: error: must be between 1 and 67108864, got -4 [training.micro_batch]
  help: samples per forward pass of one replica
[1]
$ dtsim run gcp-data-parallel/scaling-ddp --set model=mingpt-huge 2>&1 | cut -c1-56
--set: error: no profile 'mingpt-huge' in models/ [model
  help: did you mean 'mingpt-large'? there are bert, ber
$ dtsim run gcp-data-parallel/scaling-ddp --set cluster.gpu.memory=40Gb
--set: error: unknown unit 'Gb' in '40Gb' [cluster.gpu.memory]
  help: write Gbit (bits) or GB (bytes)
[1]
$ dtsim run gcp-data-parallel/scaling-ddp --set training.optimizer=adamx
--set: error: unknown value 'adamx' [training.optimizer]
  help: did you mean 'adam'? allowed are sgd, sgd-momentum, adam, adamw, adafactor, adamw-8bit, lamb, lion
[1]
$ dtsim run gcp-data-parallel/scaling-ddp --set training.global_batch=127
error: global_batch 127 is not a multiple of data 16 × micro_batch 8 [training.global_batch]
  help: use global_batch 128, a smaller micro_batch or fewer replicas
[1]
$ dtsim run gcp-data-parallel/scaling-ddp --set parallelism.data=3
error: data 3 × tensor 1 × pipeline 1 is 3 GPUs, but the cluster has 16 [parallelism]
  help: data: 16 uses all GPUs; or change cluster.nodes and gpus_per_node
[1]
$ printf 'model: mingpt-large\nclustre: gcp-a2-highgpu-8g\ntraining: {micro_batch: 8, micro_batch: 4}\n' >a.yaml; dtsim run a.yaml
a.yaml:3:28: error: duplicate key 'micro_batch', first given on line 3
      3 | training: {micro_batch: 8, micro_batch: 4}
        |                            ^
  help: keep one of the two
a.yaml:2:1: error: unknown key 'clustre'
      2 | clustre: gcp-a2-highgpu-8g
        | ^
  help: did you mean 'cluster'?
a.yaml:3:11: error: missing key 'global_batch' [training]
      3 | training: {micro_batch: 8, micro_batch: 4}
        |           ^
  help: add 'global_batch': samples per optimizer step, all replicas together
a.yaml:3:11: error: missing key 'sequence_length' [training]
      3 | training: {micro_batch: 8, micro_batch: 4}
        |           ^
  help: add 'sequence_length': tokens per sample
a.yaml:1:1: error: missing key 'cluster'
      1 | model: mingpt-large
        | ^
  help: add 'cluster': cluster profile; `dtsim list clusters`
a.yaml:1:1: error: missing key 'stack'
      1 | model: mingpt-large
        | ^
  help: add 'stack': software stack profile; `dtsim list stacks`
[1]
$ printf '' >empty.yaml; dtsim run empty.yaml
empty.yaml:1:1: error: the file is empty
  help: write one 'KEY: VALUE' a line; keys are name, description, expect, model, cluster, stack, training, parallelism, offload, input, fidelity
[1]
$ printf 'a: [1, 2\n' >syntax.yaml; dtsim run syntax.yaml
syntax.yaml:2:1: error: the list is not closed, begun on line 1
  help: close it with ']', and put ',' between entries
[1]
$ dtsim show no-such-thing
error: neither a scenario nor a profile: 'no-such-thing'
  help: `dtsim list` names all kinds
[1]
$ dtsim show mingpt-larg
error: neither a scenario nor a profile: 'mingpt-larg'
  help: did you mean 'mingpt-large'? `dtsim list` names all kinds
[1]
