// Package deploy checks what runs Forebay elsewhere: the Terraform module of the AWS
// parts. It promises that what is in this folder is well formed and names nothing
// that is not there; it refuses to reach any cloud.
package deploy
