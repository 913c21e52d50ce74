% Pipeline schedules: the numbers of the contract, and wrong usage.
$ dtsim schedule 1f1b --stages 4 --microbatches 8 --format json | grep -E '"(makespan|bubble_fraction|max_stage_span)"'
	"makespan":	33,
	"bubble_fraction":	0.2727272727272727,
	"max_stage_span":	33,
$ dtsim schedule gpipe --stages 4 --microbatches 8 --format json | tr -d ' \n\t' | grep -oE '"(peak_activation|idle)":[^]]*]'
"peak_activation":[8,8,8,8]
"idle":[9,9,9,9]
$ dtsim schedule 1f1b --stages 4 --microbatches 8 --charset ascii --width 80 | grep -c '^stage'
4
$ dtsim schedule
error: no schedule named
  help: for example `dtsim schedule 1f1b --stages 4 --microbatches 8`
[2]
$ dtsim schedule 1f2b --stages 4 --microbatches 8 2>&1 | head -1
error: unknown schedule '1f2b'
$ dtsim schedule 1f1b --stages 4
error: --microbatches is missing
  help: for example `dtsim schedule 1f1b --stages 4 --microbatches 8`
[2]
$ dtsim schedule 1f1b --stages 0 --microbatches 8
error: --stages: 0 is out of bounds
  help: from 1 to 1000000000
[2]
$ dtsim schedule 1f1b --stages 4 --microbatches 8 --forward fast
error: --forward: 'fast' is not a time
  help: a number of 0 or more, in any unit
[2]
$ dtsim schedule interleaved-1f1b --stages 4 --microbatches 10 2>&1 | grep -c error
1
% a page for a class
$ dtsim schedule gpipe 1f1b -p 2 -m 4 --html class.html >/dev/null; grep -c '<svg ' class.html; grep -E '<li>|idle from 0 to' class.html
1
<g><title>stage 1: idle from 0 to 1, filling</title>
<g><title>stage 1: idle from 0 to 1, filling</title>
<li>1f1b: takes as long, holds 2 activations instead of 4</li>
