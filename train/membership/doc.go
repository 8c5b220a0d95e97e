// Package membership knows which agents take part in a run, and when others leave or join.
//
// The agents of a configuration are slots. The members are the slots that are present. A [Log]
// lists the changes of the members, each with the iteration from which on it is valid. A run under
// a log is a function of its configuration and of the log, so that a run with deaths and births can
// be repeated bit for bit.
package membership
