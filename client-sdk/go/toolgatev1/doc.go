// Package toolgatev1 is generated from proto/toolgate/v1: the messages and stubs of Toolgate's contract. Field
// comments give units, limits and defaults. Never edit the .pb.go files.
package toolgatev1
