// Package config turns the settings of a run into a Setup.
//
// A [Config] holds the settings that a user wrote, in flags or YAML: one field for each key,
// grouped into sections that files and flags do not show. Beside each section is the list of its
// keys, each one [setting.Key]; [RegisterKey] adds keys of other packages. [Config.Check] refuses
// values that are wrong whatever the data is. [Config.Resolve] checks everything else: it parses
// all names, builds graph, edge process, mask, data split and algorithm, refuses step sizes outside
// the stable region, and returns a [Setup], in which nothing is left to choose. No other package
// checks a key.
//
// A [Method] declares an algorithm and its needs of graph, exchange and schedule. The methods of
// this module are in train/algo; [Register] adds methods of other programs. The names of networks,
// with the keys that they read, come from model.
//
// The keys are public: files written by older versions must parse and keep their
// [Config.Fingerprint], which covers every key that can change the trajectory of a run.
//
// A key that the user set ([Config.SetExplicit], which Parse calls) and that has no effect on the
// run is refused. Keys say their conditions; methods, optimizers and networks list the keys they
// read.
//
// Start reading at config.go and keysmethod.go (the keys), then check.go and setup.go.
package config
