// Package sign keeps access keys and verifies signatures of AWS (Signature Version 4),
// so that AWS SDKs prove who they are as they do at AWS.
//
// It promises that a request passes only if who sent it has the secret of a live key,
// and that nothing that was signed has changed since: method, path, query, the signed
// headers and the body. Both forms are understood: the Authorization header and query
// parameters (presigned). Comparing takes the same time wherever signatures differ.
// Secrets are in no error and no log.
//
// Secrets are kept in the file as they are, since SigV4 computes with the secret
// itself; the file has mode 0600 and is refused with any wider one.
//
// It refuses what would weaken that: Signature Version 2, session tokens (there is
// nobody who issues them), chunk signatures, clocks that are off by more than 5 minutes.
// A signature can be sent again while its time runs, as at AWS: TLS is what keeps
// others from seeing it.
//
// Host is signed. Behind a proxy that changes it the signature fails, unless Finish is
// told the name that clients use; what a request says of its own way (X-Forwarded-Host)
// is never believed. The region of a signature may be any.
package sign
