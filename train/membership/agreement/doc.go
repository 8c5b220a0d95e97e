// Package agreement lets the processes of a run agree on the changes of its members.
//
// Each process has a [Group]. The groups keep a log by Raft, whose voters are the members. An entry
// says that an agent is silent, that it leaves or joins, or how far a member has come. A change is
// valid from the largest iteration on that a member tells: all others go on to it. Its leaves and joins
// are the lines of a [membership.Log], with which the run can be repeated.
//
// A strict majority of the members decides. The others wait until they hear it again.
package agreement
