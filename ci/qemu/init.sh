#!/bin/sh
# The first process of a guest: prepares the system, runs /guest/run as the order
# in /guest/order says, sends its exit status and turns the machine off. What the
# program prints goes to a port of its own, so that no line of the kernel stands in it.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o gid=5,mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t tmpfs -o mode=755 tmpfs /run
ln -sf /proc/self/fd /dev/fd
ln -sf /proc/self/fd/0 /dev/stdin
ln -sf /proc/self/fd/1 /dev/stdout
ln -sf /proc/self/fd/2 /dev/stderr
mkdir -p /run/lock /home/tester /home/other
chown 1000:1000 /home/tester
chown 1001:1001 /home/other
hostname guest
ip link set lo up

. /guest/order
for module in virtio_pci virtio_console virtio_blk dm-mod loop $modules; do
	modprobe -q "$module" || echo "guest: this kernel has no module $module"
done

# port prints the device of a port once it is there.
port() {
	while :; do
		for name in /sys/class/virtio-ports/*/name; do
			[ -e "$name" ] && [ "$(cat "$name")" = "$1" ] || continue
			device=/dev/$(basename "$(dirname "$name")")
			[ -e "$device" ] && echo "$device" && return
		done
		usleep 20000
	done
}

# With systemd the program is a service of its, in the group that it makes.
if [ -n "$systemd" ]; then
	results=$(port results)
	status=$(port status)
	mkdir /system
	for disk in /sys/block/vd*; do
		[ "$(cat "$disk/serial")" != execpoint-system ] || mount -t ext4 "/dev/$(basename "$disk")" /system
	done
	for path in /guest $added; do
		mkdir -p "/system$(dirname "$path")"
		cp -a "$path" "/system$(dirname "$path")/"
	done
	mkdir -p "/system$directory"
	cat >/system/guest/after <<-END
		#!/bin/sh
		case \$EXIT_CODE in exited) ;; *) EXIT_STATUS=137 ;; esac
		echo "exit \$EXIT_STATUS" >$status
		exec systemctl poweroff --force --force >/dev/null 2>&1
	END
	chmod 755 /system/guest /system/guest/after
	cat >/system/etc/systemd/system/execpoint.target <<-END
		[Unit]
		Requires=basic.target
		After=basic.target
		Wants=dbus.service systemd-logind.service execpoint.service
		AllowIsolate=yes
	END
	cat >/system/etc/systemd/system/execpoint.service <<-END
		[Unit]
		After=basic.target dbus.service systemd-logind.service
		[Service]
		Type=oneshot
		User=$user
		Delegate=${delegated:-no}
		StandardOutput=file:$results
		StandardError=inherit
		ExecStart=/guest/run
		ExecStopPost=+/guest/after
	END
	umount /run /tmp /sys /proc
	mount --move /dev /system/dev
	exec switch_root /system /sbin/init
fi

# The layouts are those of systemd.
own_group=/sys/fs/cgroup
case $cgroups in
v2)
	mount -t cgroup2 -o nsdelegate,memory_recursiveprot cgroup2 /sys/fs/cgroup
	;;
*)
	mount -t tmpfs -o mode=755 tmpfs /sys/fs/cgroup
	for set in cpu,cpuacct memory freezer pids devices blkio cpuset hugetlb perf_event net_cls,net_prio rdma; do
		mkdir -p "/sys/fs/cgroup/$set"
		mount -t cgroup -o "$set" cgroup "/sys/fs/cgroup/$set" || { echo "guest: this kernel has no $set of version 1"; rmdir "/sys/fs/cgroup/$set"; continue; }
		case $set in *,*) ln -s "$set" "/sys/fs/cgroup/${set%,*}"; ln -s "$set" "/sys/fs/cgroup/${set#*,}" ;; esac
	done
	mkdir /sys/fs/cgroup/systemd
	mount -t cgroup -o none,name=systemd cgroup /sys/fs/cgroup/systemd
	[ "$cgroups" = v1 ] || { mkdir /sys/fs/cgroup/unified && mount -t cgroup2 cgroup2 /sys/fs/cgroup/unified; }
	;;
esac 2>&1

# give passes all controllers of a group on to those below it.
give() {
	for controller in $(cat "$1/cgroup.controllers"); do
		echo "+$controller" >"$1/cgroup.subtree_control" || echo "guest: no controller $controller below $1"
	done
}

# A group that is delegated as systemd does it for Delegate=yes: the user of the
# service owns it and may make groups below, and the service begins in it.
if [ "$cgroups" = v2 ]; then
	give /sys/fs/cgroup
	if [ -n "$delegated" ]; then
		mkdir -p /sys/fs/cgroup/system.slice
		give /sys/fs/cgroup/system.slice
		own_group=/sys/fs/cgroup/system.slice/execpoint.service
		mkdir "$own_group"
		for file in . cgroup.procs cgroup.threads cgroup.subtree_control memory.oom.group memory.reclaim; do
			[ ! -e "$own_group/$file" ] || chown "$user:$user" "$own_group/$file"
		done
	fi
fi

results=$(port results)
status=$(port status)
chmod 755 /guest
(
	[ -z "$delegated" ] || echo 0 >"$own_group/cgroup.procs"
	if [ "$user" = root ]; then
		exec /guest/run
	fi
	export HOME=/home/$user USER=$user
	exec /usr/sbin/setpriv --reuid "$user" --regid "$user" --init-groups /guest/run
) </dev/null >"$results" 2>&1
echo "exit $?" >"$status"
sync
poweroff -f
