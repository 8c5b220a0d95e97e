// Package spelling reads values of the configuration such as ring and er(0.3): a name, for some names
// with an argument in brackets, as their forms show, ring and er(p). [Split] splits them; [Nearest]
// and [NearestForm] suggest the closest valid name for a misspelled one.
package spelling
