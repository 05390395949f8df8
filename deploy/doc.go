// Package deploy checks what runs Forebay elsewhere: the Terraform module of the AWS
// parts, the units of systemd, the Ansible role, the container file and the files for
// Kubernetes. It promises that what is in this folder is well formed, agrees with itself
// and with the program, and names nothing that is not there; it refuses to reach any cloud.
package deploy
