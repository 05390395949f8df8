// Package backup copies a data folder while a server works in it, and puts such a copy
// back.
//
// It promises that each database in a copy is whole and of one moment, that the moments
// are in an order in which nothing is missing (the queue first: what it says is written is
// in the copies that are made after it), and that a copy is there under its name only when
// it is complete and on the disk. A copy says of which format it is, of which versions its
// databases are, and the checksum of each file; nothing is put back that does not match.
//
// It refuses to write into a folder that holds something, and to judge what the databases
// mean: who opens them does that.
package backup
