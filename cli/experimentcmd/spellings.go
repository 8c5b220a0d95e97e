package experimentcmd

import "fspda/bench"

// spellings are the commands that run experiments.
var spellings = []spelling{
	{use: "experiment FILE | experiment NAME", short: "Run an experiment: a figure, a search, a comparison, or " +
		"a list of " +
		"them; it resumes", long: experimentLong, args: "the file of an experiment, or the number or name of a figure",
		example: `  fspda experiment mine.yaml --seeds 3 --jobs 2
  fspda experiment evidence.yaml --cores 2   # a list of files`,
		flags: "flavour retune with accounting" + runFlags + seedFlags + changeFlags + queueNames, find: find},
	{use: "figure list | figure N | figure NAME | figure -c FILE",
		short: "Run all algorithms of a figure of the paper, of a comparison, or of your own, and draw it",
		long:  figureLong, args: "list, or the number or name of one figure",
		example: `  fspda figure list
  fspda figure 1 --scale 0.02 --retune --data-dir DIR
  fspda figure 1 --only sa,storm,choco --jobs 2 --data-dir DIR
  fspda figure 1 --without kgt,led --with d2 --with dsgd,theta=0.3 --scale 0.02 --retune --data-dir DIR
  fspda figure -c mine.yaml --seeds 3
  fspda figure 9
  fspda figure methods --jobs 2 --data-dir DIR
  fspda figure low-communication --jobs 2 --data-dir DIR`,
		flags: "config flavour retune with accounting no-time" + runFlags + seedFlags + changeFlags,
		find:  bench.FindFigure, list: listFigures},
	{use: "sweep -c grid.yaml", short: "Search over settings, on a grid or at random, and rank the runs",
		long: `Search over settings, on a grid or at random, and rank the runs. This is another name of fspda experiment, whose help
describes the file:

  base: {algo: fspda-sa, iterations: 2000}      # configuration of all runs
  runs:
    - grid: {alpha: [0.1, 0.3], density: [0.1, 1]}  # every combination
      random: {eta: 'log(0.0001, 0.01)'}            # each with so many draws
  search: {samples: 5, seeds: [1, 2, 3], metric: test_acc_avg, halving: {at: [0.25, 0.5], keep: 0.5}}

The folder holds a folder for each run, ranking.md and ranking.csv, evaluations.csv with every evaluation of every run,
and sweep.html with the curves of the best ten.`,
		example: `  fspda sweep -c grid.yaml --jobs 2
  fspda sweep -c grid.yaml --seeds 3`, flags: "config" + runFlags + seedFlags},
	{use: "tune -c methods.yaml",
		short: "Compare methods with the same budget of tuning each, on seeds that were not tuned on",
		long: `Compare methods with the same budget of tuning each, on seeds that were not tuned on. This is another name of fspda
experiment, whose help describes the file:

  base: {iterations: 2000, partition: sorted}   # configuration of all runs
  runs:                                         # each with its configuration and its grid
    - {set: {algo: fspda-sa}, grid: {alpha: [0.1, 0.3, 1], eta: [0.001, 0.01, 0.1]}}
    - {set: {algo: dsgd, order: atc}, grid: {alpha: [0.1, 0.3, 1], theta: [0.2, 0.35, 0.5]}}
  search: {seeds: [101, 102], metric: test_acc_avg, budgets: [{bits: 1.0e+9}, {seconds: 60}]}
  seeds: [1, 2, 3]                              # fresh seeds, for the chosen points
  network: {gradient_ms: 5}                     # simulated links, in place of a file of the key links

Every point of each grid runs with every seed of the search. The best point of a method, by the mean of the metric, runs
again with the fresh seeds. Grids of different size are refused. The folder holds the runs, tuning.md and tuning.csv
(grid, chosen values, whether one is at an end of its range, mean and standard deviation over the fresh seeds),
ranking.svg and .png, and tuning.html, .svg and .png with the curves of the reported runs until the budget is spent, one
plot for each group of methods.`,
		example: "  fspda tune -c methods.yaml --jobs 2", flags: "config" + runFlags},
	{use: "replay list | replay NAME", short: "Repeat experiments of other papers, beside the printed values",
		long: `Repeat experiments of other papers and print their values beside ours: the difference, the share of the run that was
made, and the hours that all of it takes at this speed.

base-graph counts rounds of averaging, exactly; it takes a second. The others train networks: --scale 0.01 makes a
hundredth of the iterations, with the schedule of the shorter run, and the table says that it is partial. The folder
holds the runs, paper.md with the comparison, and what fspda figure writes. The same command continues.`,
		example: `  fspda replay list
  fspda replay base-graph
  fspda replay relaysgd --only dsgd-001,relay-001,sa-001 --scale 0.1 --data-dir DIR`,
		args:  "list, or the name of one experiment",
		flags: "seeds out jobs threads quiet yes" + layoutNames + changeFlags,
		find:  bench.FindReplay, list: listReplays},
	{use: "queue FILE.yaml",
		short: "Run a queue of figures, searches and runs on idle cores; it survives restarts",
		long: `Run a queue of figures, searches and runs on idle cores, one after the other by priority. This is another name of
fspda experiment for a file that lists others; its help describes the file.`,
		example: `  fspda queue evidence.yaml --cores 2
  fspda queue evidence.yaml --list`, args: "the file that lists the commands; --help shows one", flags: queueNames,
		find: bench.Read},
}

const experimentLong = `Run an experiment. Its file says what all runs share, what each changes, how they are searched and what shows them:

  title: Two methods
  base: {partition: sorted, iterations: 2000}   # configuration of all runs
  runs:                                         # each with its name, title, group, configuration, and points to search
    - {name: sa, set: {algo: fspda-sa}, grid: {alpha: [0.1, 0.3]}, random: {eta: 'log(0.0001, 0.01)'}}
    - {set: {algo: dsgd, order: atc}, grid: {alpha: [0.1, 0.3]}, random: {theta: 'uniform(0.2, 0.5)'}}
  search:                                       # how the points are judged
    samples: 5                                  # draws of the random keys: uniform(a,b), log(a,b), int(a,b), or a list
    seeds: [101, 102]                           # of each point; judged by the mean
    metric: test_acc_avg                        # a column of metrics.csv, bits_to(0.9), time_to(0.9) or
                                                # iterations_to(0.9), for this accuracy of the mean model
    best: max                                   # or min
    budgets: [{bits: 1.0e+9}, {seconds: 60}]    # judged at the last evaluation within each; without it, at the end
    accounting: shared-seed                     # of these bits
  seeds: [1, 2, 3]                              # of the runs that are reported

Without grids and search, all runs are made and drawn (fspda figure). With a search and without seeds, all points are
ranked (fspda sweep), and halving: {at: [0.25, 0.5], keep: 0.5} gives up the worse half at these shares of the run. With
a search and seeds, the best point of each run is made again with the seeds, and only that is reported (fspda tune).

  network: {gradient_ms: 5}                     # simulated links of all runs, in place of a file of the key links
  variants: {printed: {momentum: 0}}            # changes of base, and of a run, that --flavour selects
  panels: [{metric: test_acc, model: mean, x: bits, y: linear}]
  source: The paper of the runs' values         # with printed: 87.4 at a run

A file may list others and commands instead (fspda queue). Each runs in a process of its own, at low priority (nice):

  folder: runs/evidence                         # the default is runs/queue-FILE
  files:
    - {file: grid.yaml, cores: 2}
    - {name: figure-5, priority: 2, command: figure 5 --scale 0.001 --retune --seeds 3 --data-dir DIR}
    - {name: long, command: [train, --edges, bernoulli(0.5), --iterations, 100000]}

A command is one of experiment, figure, sweep, tune, theory, replay, train, without --out, --threads and --resume, which
the list sets. A task starts when a core of --cores is free and the load of the machine would not exceed --max-load.
Higher priorities run first. The file is read again before each start, so that tasks can be added meanwhile. A task with
a flag that does not exist, or a file that no task writes, is refused before the first one starts. A task that asks for
more cores than there are runs alone, on those. The folder holds a folder for each task, NAME.log with its output,
NAME.json with its status and time, and queue.md, a table of all tasks that is current while they run.

All values are checked before the first run starts. What is done is kept and what is unfinished goes on, with the same
bits, when the same command runs again, also after kill -9. Files that were written for earlier versions are read too.`

// figureLong is the help of figure.
const figureLong = `Run all algorithms of a figure of the paper on the same data, split and initial model, and draw it.

The figure's folder holds a run folder for each curve, the plots as SVG and PNG, or in the formats of --format,
figure.html to look into them, the final numbers as table.md, table.csv and table.tex, and all evaluations as
evaluations.csv. What is done is kept and what is unfinished goes on when the same command runs again, which also draws
anew: --format pdf --width 6.9in --no-title --no-notes for a paper.

Flavours: printed (the tables of the paper), released (what the released scripts run, with the correct recursions),
bug-compat (the same with the released program's departures). --scale 0.01 makes a hundredth of the iterations;
--retune scales step sizes with it so that the figure keeps its shape, by the rules of docs/experiments.md.

methods compares all methods, and low-communication those that exchange little, at equal bits and at equal seconds of a
slow network: each is tuned by the same number of runs, as fspda tune does it, and reported on seeds that no choice has
seen. The folder holds ranking.png, tuning.md with grids, choices and results, and tuning.html with the curves.

--with adds an algorithm, also one that your own program registers: with the settings of the figure's first run, and
edges, mask and momentum that it allows. -c reads an experiment from a file, as fspda experiment does:

  title: My method against two others
  base: {data: mnist, agents: 10, iterations: 2000}
  runs:
    - {name: mine, set: {algo: mine, params: {beta: 0.9}}}
    - {name: dsgd, title: DSGD, set: {algo: dsgd}}
  seeds: [1, 2, 3]
  panels: [{metric: test_acc, model: mean, x: bits, y: linear}]   # may be missing`
