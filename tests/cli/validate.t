% Tables of measurements: what is wrong with a table, rows that cannot be simulated, and a table that works.
$ dtsim validate no-such-table.csv
error: cannot read no-such-table.csv: No such file or directory
  help: name a CSV file; published tables lie in scenarios/published/
[3]
$ printf 'id,measured.iteration_s\n"a,1\n' >t.csv; dtsim validate t.csv
t.csv:2:1: error: this quote has no end
      2 | "a,1
        | ^
  help: close it with the same quote; a quote inside quotes is written twice: ""
[1]
$ printf 'id,training.micro_batch,measured.iteration_s\na,1\nb,2,x\n,3,4\nc,3,-1\n' >t.csv; dtsim validate t.csv
t.csv:2:1: error: 2 cells, but the header names 3 columns
      2 | a,1
        | ^
  help: put cells that hold a comma in quotes
t.csv:3:5: error: 'x' is not a positive number
      3 | b,2,x
        |     ^
  help: an empty cell means: not measured
t.csv:4:1: error: a row without an id
      4 | ,3,4
        | ^
t.csv:5:5: error: '-1' is not a positive number
      5 | c,3,-1
        |     ^
  help: an empty cell means: not measured
[1]
$ printf 'id,measured.iteration\na,1\n' >t.csv; dtsim validate t.csv
t.csv:1:4: error: unknown metric 'measured.iteration'
      1 | id,measured.iteration
        |    ^
  help: did you mean measured.iteration_s?
[1]
$ printf 'name,training.micro_batch\na,1\n' >t.csv; dtsim validate t.csv
t.csv:1:1: error: no column 'id'
      1 | name,training.micro_batch
        | ^
  help: add a column 'id' that names each row
t.csv: error: no column 'measured.…' to compare with
  help: e.g. measured.iteration_s
[1]
$ printf 'id,model,cluster.profile,cluster.nodes,stack,training.global_batch,training.micro_batch,training.sequence_length,training.recompute,measured.iteration_s,measured.peak_device_gib\nfirst,mingpt-large,gcp-a2-highgpu-8g,1,pytorch-1.11,64,8,256,,0.1,12.5\nno model,mingpt-larg,gcp-a2-highgpu-8g,1,pytorch-1.11,64,8,256,,0.1,\nsecond,mingpt-large,gcp-a2-highgpu-8g,1,pytorch-1.11,64,8,256,full,0.1,\n' >t.csv
$ dtsim validate t.csv | sed -E 's/[-+]?[0-9]+\.[0-9]+( %)?/#/g; s/ *▬*│▬*/ BAR/; s/  +/  /g'
t.csv: 3 rows, 2 simulated, 1 not

iteration_s (s)
  id  measured  predicted  error  -50%  |  +50%
  first  #  #  # BAR
  second  #  #  # BAR

peak_device_gib (GiB)
  id  measured  predicted  error  -50%  |  +50%
  first  #  #  # BAR

Summary
  metric  predicted by  n  MAPE  median  p90  bias  rank
  iteration_s  dtsim  2  #  #  #  #  -
  one utilisation  2  #  #  #  #  -
  … and bubble  2  #  #  #  #  -
  peak_device_gib  dtsim  1  #  #  #  #  -

  The baselines are what anyone could guess: time = model FLOPs / (peak x u),
  with the u that suits each table best, and the same times 1 + (p-1)/(m v) for
  the pipeline's bubble.
  u = #, with bubble # in t.csv

Not simulated (1 row)
  1  no profile 'mingpt-larg' in models/ [model]: no model (line 3)
$ dtsim validate t.csv --format json | grep -E '"(id|metric|line|reason|rows|simulated|not_simulated|n)"'
	"rows":	[{
			"id":	"first",
			"metric":	"iteration_s",
			"id":	"first",
			"metric":	"peak_device_gib",
			"id":	"second",
			"metric":	"iteration_s",
			"n":	2,
			"n":	1,
				"n":	2,
				"n":	2,
			"rows":	3,
			"simulated":	2,
			"not_simulated":	1,
	"not_simulated":	[{
			"line":	3,
			"id":	"no model",
			"reason":	"no profile 'mingpt-larg' in models/ [model]"
$ printf 'id,model,measured.iteration_s\na,mingpt-larg,1\n' >t.csv; dtsim validate t.csv
t.csv: 1 row, 0 simulated, 1 not

Not simulated (1 row)
     1  no profile 'mingpt-larg' in models/ [model]: a (line 2)
[1]
% Groups, the worst rows, overrides for every row; the same bytes whatever the number of threads.
$ printf 'id,model,cluster,cluster.nodes,stack,training.global_batch,training.micro_batch,training.sequence_length,training.precision,training.optimizer,measured.iteration_s\na,mingpt-large,gcp-a2-highgpu-8g,1,pytorch-1.11,64,8,256,fp16,sgd,0.4\nb,mingpt-large,gcp-a2-highgpu-8g,2,pytorch-1.11,128,8,256,fp16,sgd,9\n' >g.csv
$ dtsim validate g.csv --by cluster.nodes | sed -n '/^By/,/^$/p' | sed 's/[0-9.]*[0-9] %/#/g'
By cluster.nodes
  group  metric       n    MAPE     p90     bias  rank  -50%   |   +50%
  1      iteration_s  1  #  #  -#     -  ▬▬▬▬▬▬▬│
  2      iteration_s  1  #  #  -#     -  ▬▬▬▬▬▬▬│
$ dtsim validate g.csv --by cluster.profile --worst 1 --format json | grep -E '"(key|value|group|id)"' | sort | uniq -c
      3 			"group":	"gcp-a2-highgpu-8g",
      1 			"id":	"a",
      2 			"id":	"b",
      1 			"key":	"cluster.profile",
      1 			"value":	"gcp-a2-highgpu-8g",
$ for n in 1 2; do dtsim validate g.csv --by table --threads $n --format json | cksum; done | sort -u | wc -l
1
$ dtsim validate g.csv --set model=mingpt-larg | tail -1
     2  no profile 'mingpt-larg' in models/ [model]: a (line 2), b (line 3)
$ dtsim validate g.csv --by cluster.nodez
error: rows cannot be grouped by 'cluster.nodez': there is no such key
  help: a dotted scenario key such as cluster, stack or parallelism.tensor, or table
[1]
$ dtsim validate g.csv --worst 0
error: --worst: 0 is out of bounds
  help: from 1 to 100000
[2]
% a column that no scenario knows is one error, not one for each row
$ printf 'id,modle,measured.iteration_s\na,gpt2,1\nb,gpt2,2\n' >typo.csv; dtsim validate typo.csv
typo.csv:1:4: error: unknown key 'modle'
      1 | id,modle,measured.iteration_s
        |    ^
  help: did you mean 'model'?
[1]
% so is one whose cells are all empty; an id that is there twice; tables as spreadsheets write them
$ sed '1s/training.precision/training.precison/; 2,$s/,fp16,/,,/' g.csv >typo.csv; dtsim validate typo.csv
typo.csv:1:106: error: unknown key 'precison' [training.precison]
      1 | id,model,cluster,cluster.nodes,stack,training.global_batch,training.micro_batch,training.sequence_length,training.precison,training.optimizer,measured.iteration...
        |                                                                                                          ^
  help: did you mean 'precision'?
[1]
$ sed 's/^b,/a,/' g.csv >twice.csv; dtsim validate twice.csv
twice.csv:3:1: error: the id 'a' is that of line 2, too
      3 | a,mingpt-large,gcp-a2-highgpu-8g,2,pytorch-1.11,128,8,256,fp16,sgd,9
        | ^
  help: give each row an id of its own
[1]
$ sed 's/,/;/g' g.csv >semicolons.csv; dtsim validate semicolons.csv
semicolons.csv:1:1: error: columns are separated by semicolons, not by commas
      1 | id;model;cluster;cluster.nodes;stack;training.global_batch;training.micro_batch;training.sequence_length;training.precision;training.optimizer;measured.iteratio...
        | ^
  help: in a spreadsheet save as CSV (comma delimited); decimals have a point
[1]
$ iconv -f utf8 -t utf16 g.csv >wide.csv; dtsim validate wide.csv
wide.csv: error: the table is written in UTF-16
  help: save it as CSV UTF-8
[1]
$ sed '2s/0.4/"0,4"/' g.csv >comma.csv; dtsim validate comma.csv
comma.csv:2:67: error: '0,4' is not a positive number
      2 | a,mingpt-large,gcp-a2-highgpu-8g,1,pytorch-1.11,64,8,256,fp16,sgd,"0,4"
        |                                                                   ^
  help: decimals have a point, and thousands nothing
[1]
$ (printf '\357\273\277'; sed 's/,/, /g; s/$/\r/' g.csv; printf ',,,,,,,,,,\r\n') >excel.csv; dtsim validate excel.csv --format json | grep -vE '"(path|table)"' >excel.json; dtsim validate g.csv --format json | grep -vE '"(path|table)"' | diff - excel.json && echo the same
the same
$ sed 's/,sgd,.*/,sgd,/' g.csv >empty.csv; dtsim validate empty.csv
empty.csv: 2 rows, 2 simulated, 0 not
empty.csv: warning: no row has a measured value: there is nothing to compare with
  help: fill in a column measured.…; `dtsim run TABLE.csv#ID` shows what a row takes
$ printf 'model: m\n' >s.yaml; dtsim validate s.yaml
error: 's.yaml' is no table of measurements
  help: a table is a CSV file; `dtsim run` takes a scenario
[1]
$ sed '1s/^id,/ID,/; 1s/measured\.//' g.csv >names.csv; dtsim validate names.csv
names.csv:1:1: error: unknown column 'ID'
      1 | ID,model,cluster,cluster.nodes,stack,training.global_batch,training.micro_batch,training.sequence_length,training.precision,training.optimizer,iteration_s
        | ^
  help: did you mean 'id'?
names.csv:1:144: error: unknown column 'iteration_s'
      1 | ID,model,cluster,cluster.nodes,stack,training.global_batch,training.micro_batch,training.sequence_length,training.precision,training.optimizer,iteration_s
        |                                                                                                                                                ^
  help: did you mean 'measured.iteration_s'?
names.csv:1:1: error: no column 'id'
      1 | ID,model,cluster,cluster.nodes,stack,training.global_batch,training.micro_batch,training.sequence_length,training.precision,training.optimizer,iteration_s
        | ^
  help: add a column 'id' that names each row
names.csv: error: no column 'measured.…' to compare with
  help: e.g. measured.iteration_s
[1]
% A row that does not fit says by how much.
$ printf 'id,source,note,model.profile,cluster.profile,stack.profile,training.sequence_length,training.micro_batch,training.global_batch,training.precision,parallelism.data_parallel,measured.iteration_s\nlarge,made up,,gpt3-6.7b,dgx-a100-40gb,megatron-lm,2048,1,8,bf16,ddp,1\nhosted,made up,,gpt3-175b,dgx-a100-80gb,megatron-lm,2048,1,8,bf16,fsdp,1\n' >large.csv; dtsim validate large.csv --width 200 | grep -A1 'does not fit'
  * the simulator says that this does not fit; GiB of live tensors and context on the fullest GPU: large 144.4 of 39.6, hosted 561.2 of 79.3
% A row on the edge is marked: a little less memory would leave no retries.
$ printf 'id,model,cluster.profile,cluster.nodes,stack,training.global_batch,training.micro_batch,training.sequence_length,training.precision,training.optimizer,parallelism.data_parallel,stack.allocator.expandable,measured.tokens_per_s_per_gpu\nshort,llama-3-8b,dgx-h100,1,torchtitan,8,1,7000,bf16,adamw,fsdp,true,7500\nedge,llama-3-8b,dgx-h100,1,torchtitan,8,1,8128,bf16,adamw,fsdp,true,7500\npieces,llama-3-8b,dgx-h100,1,torchtitan,8,1,8256,bf16,adamw,fsdp,false,7500\n' >edge.csv; dtsim validate edge.csv | sed -n '3,12p'
tokens_per_s_per_gpu (tokens/s per GPU)
  id        measured  predicted    error  -50%      |      +50%
  short         7500       7818   +4.2 %            │▬
  edge ^        7500       4199  -44.0 %   ▬▬▬▬▬▬▬▬▬│
  pieces ?      7500       7737   +3.2 %            │▬
  ^ near the GPU's capacity: retries of the caching allocator are in the time,
    and a little less memory would leave none; share of the iteration: edge 46 %
  ? live tensors fit, but a request fails in the replay of the caching
    allocator: the time is one without retries: pieces
$ dtsim validate edge.csv --format json | grep -E '"(id|memory_fill|retry_share)"' | sed 's/\(0.[0-9][0-9]\)[0-9]*/\1/'
			"id":	"short",
			"memory_fill":	0.82,
			"retry_share":	0,
			"id":	"edge",
			"memory_fill":	0.94,
			"retry_share":	0.45,
			"id":	"pieces",
			"memory_fill":	0.95,
			"retry_share":	0,
% Sweeps, too.
$ dtsim sweep edge.csv#edge --vary training.sequence_length=7000,8128 | grep -E 'GiB|\^'
  7000               8   895.4 ms    62,542  44.3 %    72.5 GiB                *
  8128               8    1.936 s    33,594  24.5 %  78.7 GiB ^                *
^ near the GPU's capacity: retries of the caching allocator cost up to 46 % of
% Columns in other units than their names say, and rows that are all off in one direction.
$ printf 'id,model,cluster,cluster.nodes,stack,training.global_batch,training.micro_batch,training.sequence_length,training.recompute,measured.iteration_s,measured.tokens_per_s_per_gpu,measured.peak_device_gib\na,mingpt-large,gcp-a2-highgpu-8g,1,pytorch-1.11,64,8,256,,250,140000,12000\nb,mingpt-large,gcp-a2-highgpu-8g,1,pytorch-1.11,64,8,256,full,300,110000,11000\n' >units.csv
$ dtsim validate units.csv | sed -n '/Another/,/^$/p'
Another unit?
  measured.iteration_s of units.csv: is it milliseconds? The column is for s.
  measured.tokens_per_s_per_gpu of units.csv: is it tokens/s of all GPUs
  together? The column is for tokens/s per GPU.
  measured.peak_device_gib of units.csv: is it MiB? The column is for GiB.
$ sed 's/,250,/,270,/' units.csv >more.csv; (head -1 units.csv; echo s,mingpt-large,gcp-a2-highgpu-8g,1,pytorch-1.11,64,8,256,,0.2,,12000) >mixed.csv; dtsim validate units.csv mixed.csv more.csv | sed -n '/Another/,/^$/p'
Another unit?
  measured.iteration_s of units.csv, more.csv: is it milliseconds? The column is
  for s.
  measured.tokens_per_s_per_gpu of units.csv, more.csv: is it tokens/s of all
  GPUs together? The column is for tokens/s per GPU.
  measured.peak_device_gib of units.csv, mixed.csv, more.csv: is it MiB? The
  column is for GiB.
$ dtsim validate units.csv --format json | sed -n '/other_unit/,/}/p'
			"other_unit":	{
				"iteration_s":	"milliseconds",
				"tokens_per_s_per_gpu":	"tokens/s of all GPUs together",
				"peak_device_gib":	"MiB"
			},
% Slow, but possible for one GPU of eight: no other unit.
$ (head -1 units.csv; echo a,mingpt-large,gcp-a2-highgpu-8g,1,pytorch-1.11,64,8,256,,,30000,) >fast.csv; dtsim validate fast.csv | grep -c Another
0
[1]
$ for n in 1 2 4; do for b in 4 8; do echo "r$n$b,mingpt-large,gcp-a2-highgpu-8g,$n,pytorch-1.11,$((8*n*b)),$b,256,,4,,"; done; done >rows; (head -1 units.csv; cat rows) >slow.csv; dtsim validate slow.csv | sed -n '/rows are predicted/,$p'
  6 of 6 rows are predicted too fast, all of them by 53 % on average. Where a
  fact that they share is not the cause (network, stack, what is fused; `dtsim
  explain` says where the time goes), `dtsim calibrate TABLE --fit KEY` fits a
  number of a profile to them.
% A record of one's own takes the place of the published one; a broken one costs the range, not the result.
$ dtsim validate slow.csv --record runs.csv >/dev/null && head -2 runs.csv
table,id,source,model,stack,architecture,precision,parameters,gpus,predicted_mfu,ratio,memory_ratio
slow,r14,,gpt,"PyTorch 1.11, eager",ampere,amp-bf16,8.34e+08,8,0.05922,15.52,
$ mkdir -p own/scenarios/published/record && cp runs.csv own/scenarios/published/record/ && DTSIM_DATA=own:$DATA dtsim run gcp-data-parallel/scaling-ddp | grep -c Likely
0
[1]
$ sed 's/,ampere,/,/' runs.csv >own/scenarios/published/record/runs.csv; DTSIM_DATA=own:$DATA dtsim run gcp-data-parallel/scaling-ddp | grep -E 'Iteration|Likely'
own/scenarios/published/record/runs.csv:2:1: warning: the record of published runs cannot be read: 11 cells, but the header names 12 columns
      2 | slow,r14,,gpt,"PyTorch 1.11, eager",amp-bf16,8.34e+08,8,0.05922,15.52,
        | ^
  help: `dtsim validate --record` writes such a file; without it no likely range is told
  Iteration time        1.112 s          115 samples/s    29,461 tokens/s
$ (head -1 units.csv; echo m,mingpt-large,gcp-a2-highgpu-8g,1,pytorch-1.11,64,8,256,,,,12) >memory.csv; dtsim validate memory.csv --record none.csv >/dev/null; ls none.csv
warning: --record none.csv: no run to record; nothing is written
  help: it holds training runs with measured.iteration_s or a rate
ls: cannot access 'none.csv': No such file or directory
[2]
% What was measured is bounded as durations of scenarios are.
$ printf 'id,model,cluster,stack,training.global_batch,training.micro_batch,training.sequence_length,measured.iteration_s,measured.peak_allocated_gib\na,gpt2,dgx-a100-80gb,pytorch-2,64,1,1024,1e308,1e-10\nb,gpt2,dgx-a100-80gb,pytorch-2,64,1,1024,1e-308,\n' >far.csv; dtsim validate far.csv
far.csv:2:42: error: '1e308' is out of bounds
      2 | a,gpt2,dgx-a100-80gb,pytorch-2,64,1,1024,1e308,1e-10
        |                                          ^
  help: from 1e-9 to 1e9 s
far.csv:2:48: error: '1e-10' is out of bounds
      2 | a,gpt2,dgx-a100-80gb,pytorch-2,64,1,1024,1e308,1e-10
        |                                                ^
  help: from 1e-9 to 1e9 GiB
far.csv:3:42: error: '1e-308' is out of bounds
      3 | b,gpt2,dgx-a100-80gb,pytorch-2,64,1,1024,1e-308,
        |                                          ^
  help: from 1e-9 to 1e9 s
[1]
% within them nothing leaves the numbers
$ printf 'id,model,cluster,stack,training.global_batch,training.micro_batch,training.sequence_length,measured.iteration_s\na,gpt2,dgx-a100-80gb,pytorch-2,64,1,1024,1e9\nb,gpt2,dgx-a100-80gb,pytorch-2,64,1,1024,1e-9\n' >edges.csv; dtsim validate edges.csv | grep -ciE 'nan|inf |[0-9]{30}'
0
[1]
