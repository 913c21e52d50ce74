% Pipeline schedules: the numbers of the contract, and wrong usage.
$ dtsim schedule 1f1b --stages 4 --microbatches 8 --format json | grep -E '"(makespan|bubble_fraction|max_stage_span)"'
	"makespan":	33,
	"bubble_fraction":	0.2727272727272727,
	"max_stage_span":	33,
$ dtsim schedule gpipe --stages 4 --microbatches 8 --format json | tr -d ' \n\t' | grep -oE '"(peak_activation|idle)":[^]]*]'
"peak_activation":[8,8,8,8]
"idle":[9,9,9,9]
$ dtsim schedule 1f1b --stages 4 --microbatches 8 --charset ascii --width 80 | grep -c '^stage'
8
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
error: --forward: 'fast' is not a number
  help: write a number of 0 or more without a unit: only ratios count
[2]
$ dtsim schedule interleaved-1f1b --stages 4 --microbatches 10 2>&1 | grep -c error
1
% a page for a class
$ dtsim schedule gpipe 1f1b -p 2 -m 4 --html class.html >/dev/null; sed -n '/data-many="4"/,/<.svg>/p; /"numbers">/,/<.ul>/p' class.html | grep -E '<li>|idle from 0 to'
<g data-by="k2-0-0" data-next="k2-1-0" class="gap"><title>stage 1: idle from 0 to 1, filling: waiting for the forward of microbatch 0 on stage 0, which ends at 1</title>
<g data-by="k3-0-0" data-next="k3-1-0" class="gap"><title>stage 1: idle from 0 to 1, filling: waiting for the forward of microbatch 0 on stage 0, which ends at 1</title>
<li>1f1b: takes as long, holds 2 activations instead of 4</li>
% and its slider: the number that is asked for is shown, others, with their table, stand by where the schedules take them
$ for m in 4 5 99; do dtsim schedule gpipe 1f1b -p 2 -m $m --html class.html >/dev/null; grep -oE 'lesson"( hidden)?|data-many="[0-9]*"' class.html | paste -sd' '; done
lesson" hidden data-many="2" lesson" data-many="4" lesson" hidden data-many="6" lesson" hidden data-many="8" lesson" hidden data-many="12" lesson" hidden data-many="16"
lesson" hidden data-many="2" lesson" hidden data-many="4" lesson" data-many="5" lesson" hidden data-many="6" lesson" hidden data-many="8" lesson" hidden data-many="12" lesson" hidden data-many="16"
lesson" hidden data-many="2" lesson" hidden data-many="4" lesson" hidden data-many="6" lesson" hidden data-many="8" lesson" hidden data-many="12" lesson" hidden data-many="16" lesson" data-many="99"
$ dtsim schedule interleaved-1f1b -p 3 -m 6 --flushes 2 --html class.html >/dev/null; grep -oE 'data-many="[0-9]*"' class.html | paste -sd' '
data-many="6" data-many="12" data-many="18" data-many="24"
% operations are counted, which several chunks have more of
$ for v in 1 2 8; do dtsim schedule $(test $v = 1 && echo 1f1b || echo interleaved-1f1b) -p 8 -m 16 -v $v --html class.html >/dev/null; grep -oE 'data-many="[0-9]*"' class.html | paste -sd' '; done
data-many="8" data-many="16" data-many="24" data-many="32" data-many="48" data-many="64"
data-many="8" data-many="16" data-many="24" data-many="32" data-many="48"
data-many="8" data-many="16"
$ dtsim schedule interleaved-1f1b -p 8 -m 64 -v 64 --html class.html >/dev/null; grep -cE 'data-many|<script|data-by' class.html; grep -o 'the page leaves out its sliders' class.html
0
the page leaves out its sliders
% a file's name may hold what others would be split at
$ dtsim schedule 1f1b -p 2 -m 4 --format torch-csv --output a,b.csv; dtsim schedule a,b.csv 1f1b -p 2 -m 4 --html class.html >/dev/null; grep -o 'data-names="[^"]*"' class.html
data-names="a,b&#10;1f1b"
% Where numbers of two digits have no room, time goes on below; no line is wider than the window.
$ dtsim schedule 1f1b -p 2 -m 16 --charset ascii --width 80 | head -16
1f1b  2 stages, 16 microbatches; F=1 B=1 W=1
stage 0 0FF1FF------0BBBBB2FF1BBBBB3FF2BBBBB4FF3BBBBB5FF4BB
stage 1 ...0FF0BBBBB1FF1BBBBB2FF2BBBBB3FF3BBBBB4FF4BBBBB5FF
        +--------------+--------------+--------------+-----
        0              5              10             15
stage 0 BBB6FF5BBBBB7FF6BBBBB8FF7BBBBB9FF8BBBBB10F9BBBBB11F
stage 1 5BBBBB6FF6BBBBB7FF7BBBBB8FF8BBBBB9FF9BBBBB10F10BBBB
        ---------+--------------+--------------+-----------
                 20             25             30
                                                               idle   peak
stage 0 10BBBB12F11BBBB13F12BBBB14F13BBBB15F14BBBB---15BBBB   5.9 %      2
stage 1 11F11BBBB12F12BBBB13F13BBBB14F14BBBB15F15BBBB......   5.9 %      1
        ---+--------------+--------------+--------------+--
           35             40             45             50
F forward   B backward   . idle: filling, draining   - waiting for a stage
digits: microbatch; time goes on in the rows below
$ for w in 80 120; do dtsim schedule zb-h1 -p 4 -m 12 --memory --width $w --charset ascii | awk -v w=$w 'length($0) > w'; done
$ dtsim schedule 1f1b zb-h1 -p 2 -m 12 --charset ascii --width 80 | grep digits
digits: microbatch, where its number has room (a wider --width, or --format svg)
% Several flushes: what a schedule asks of its microbatches it asks of those of each.
$ dtsim schedule 1f1b --stages 4 --microbatches 8 --flushes 2 | head -1
1f1b  4 stages, 2 flushes of 4 microbatches; F=1 B=1 W=1
$ dtsim schedule 1f1b --stages 4 --microbatches 8 --flushes 2 --format json | grep -E '"(microbatches|flushes)"'
	"microbatches":	8,
	"flushes":	2,
$ dtsim schedule 1f1b --stages 4 --microbatches 8 --flushes 2 --format svg | grep -o '2 flushes of 4 microbatches'
2 flushes of 4 microbatches
$ dtsim schedule 1f1b --stages 4 --microbatches 8 --flushes 2 --html page.html > /dev/null && grep -o '2 flushes of 4 microbatches' page.html
2 flushes of 4 microbatches
$ dtsim schedule interleaved-1f1b --stages 4 --microbatches 4 --flushes 4
error: in each of 4 flushes: the number of microbatches (1) must be a multiple of the number of stages (4)
  help: use 16 microbatches, or 1 flush
[1]
$ dtsim schedule interleaved-1f1b --stages 4 --microbatches 8 --flushes 4
error: in each of 4 flushes: the number of microbatches (2) must be a multiple of the number of stages (4)
  help: use 16 microbatches, or 2 flushes
[1]
$ dtsim schedule dualpipe --stages 4 --microbatches 8 --flushes 4
error: in each of 4 flushes: this schedule needs at least two microbatches per stage: 2 are fewer than 2 x 4
  help: use 32 microbatches, or 1 flush
[1]
$ dtsim schedule dualpipe --stages 3 --microbatches 8 --flushes 4
error: the number of stages (3) must be even
  help: use 2 or 4 stages
[1]
