// Package certdir keeps a certificate authority in a folder, together with the certificates that servers are given as files.
// The authority is made once and stays; what it signs is signed anew at each start.
package certdir
