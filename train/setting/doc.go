// Package setting declares settings: a [Key] says all that is known of one. Flags, files, help, the
// reference, checks, refusals and fingerprints follow from it.
//
// The settings of a run are declared in train/config. Methods, optimizers and codecs declare theirs
// beside their code.
package setting
