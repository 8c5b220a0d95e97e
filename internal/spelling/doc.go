// Package spelling finds the name that somebody meant who misspelled it.
package spelling
