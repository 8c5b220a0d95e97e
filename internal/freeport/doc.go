// Package freeport reserves ports of this machine for servers that other processes open later.
//
// A port is reserved by a UDP socket of the same number: whoever reserves ports here gets another
// one, whether a server listens yet or not. Other programs do not know of the reservation. The
// ports are below the ones that systems give to programs that ask for any.
package freeport
