// Package tlsfiles makes TLS configurations of certificates, keys and authorities in files, which are read anew when they change:
// certificates are exchanged while a service runs.
package tlsfiles
