// Package provisioner plays a former Provisioner: it takes its schema at its word, knows neither keys nor a feed, runs one operation
// of a runtime after the other, and may be told to fail as outside systems do. Runtimes are made of nothing but time.
package provisioner
