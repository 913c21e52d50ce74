% Wrong scenarios: places, keys and ways out as the command shows them; tests/golden/malformed has many more. Exit code
% 1, or 3 when a file cannot be read.
$ dtsim run no-such-scenario
error: no file and no scenario 'no-such-scenario'
  help: `dtsim list scenarios` names those that come along
[3]
$ dtsim run gcp-data-parallel/scaling-dpd
error: no file and no scenario 'gcp-data-parallel/scaling-dpd'
  help: did you mean 'gcp-data-parallel/scaling-ddp'? `dtsim list scenarios` names those that come along
[3]
$ dtsim run gcp-data-parallel/scaling-ddp --set training.micro_bacth=4
--set: error: unknown key 'micro_bacth' [training]
  help: did you mean 'micro_batch'?
[1]
$ dtsim run gcp-data-parallel/scaling-ddp --set training.micro_batch=4 --set training.micro_batch=many
--set: error: expected a whole number, got 'many' [training.micro_batch]
  help: write a whole number such as 8
[1]
$ dtsim run gcp-data-parallel/scaling-ddp --set model=mingpt-huge 2>&1 | cut -c1-36
--set: error: no profile 'mingpt-hug
  help: did you mean 'mingpt-large'?
$ printf 'model: mingpt-large\nclustre: gcp-a2-highgpu-8g\n' >a.yaml; dtsim run a.yaml 2>&1 | head -4
a.yaml:2:1: error: unknown key 'clustre'
      2 | clustre: gcp-a2-highgpu-8g
        | ^
  help: did you mean 'cluster'?
$ dtsim run . 2>&1 | sed 's/:.*//'
error
  help
$ dtsim show no-such-thing
error: neither a scenario nor a profile: 'no-such-thing'
  help: `dtsim list` names all kinds
[1]
$ dtsim show mingpt-larg
error: neither a scenario nor a profile: 'mingpt-larg'
  help: did you mean 'mingpt-large'? `dtsim list` names all kinds
[1]
% torch Pipe drives all stages from one process: a pipeline cannot leave its node.
$ dtsim run gcp-data-parallel/scaling-pdp --set parallelism.order=tensor-data-pipeline
--set: error: one process drives all stages of a pipeline, but they lie on several nodes [parallelism.order]
  help: use order: tensor-pipeline-data, which keeps a pipeline inside a node
[1]
$ dtsim run gcp-data-parallel/scaling-pdp --set parallelism.pipeline=16
--set: error: one process drives all stages of a pipeline, but they lie on several nodes [parallelism.pipeline]
  help: use fewer stages, or a stack with a process for each GPU
[1]
