// Package ha tests the services on a highly available PostgreSQL cluster: three servers managed by Patroni, with etcd. The
// services connect to the cluster with a list of hosts or through HAProxy. Two brokers and two Provisioners serve customers while
// a PostgreSQL server is killed, frozen, cut off or replaced.
//
// The tests need the programs that test/patroni.sh finds or installs. They fail if a program is missing.
package ha
