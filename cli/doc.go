// Package cli is the command fspda as a library.
//
// [Main] is the whole program. A program of one's own calls it with its parts, as in
//
//	cli.Main(cli.With(cli.Method(mine), cli.Network("mine", open)))
//
// It has every command of fspda, and its algorithms, networks and data sets are values of --algo,
// --model and --data. train.Register, model.Register and data.Register in an init function do the
// same. [Run] runs the command without ending the process.
//
// The commands are in packages by topic: traincmd (train, up, agent), modelcmd (use of a trained
// model), experimentcmd (experiments), runscmd (run folders), datacmd, benchcmd, devicecmd, docscmd.
// A new command goes into the package of its topic and is listed in the function Commands of that
// package. Package setup turns flags into a configuration, devices, data and a network; package
// command holds the code that all commands share.
package cli
