#!/bin/sh
# Turns a process in new PID, mount, IPC and UTS namespaces into the PID 1 of a throwaway host. All that the host sees is
# made here on a tmpfs: of the outer machine it has the programs, read-only, a copy of /etc and what is bound into it.
#
#   host.sh join  DIR DISK NOTIFY   goes into the cgroups of DIR/cgroups, then on with the rest in a cgroup namespace
#   host.sh build DIR DISK NOTIFY   mounts, leaves the old root and becomes systemd
#
# DIR/cgroups (name, options, path) and DIR/binds (ro or rw, outside, inside) are tables with a tab between columns. DISK
# is what survives a crash. A failure before systemd is exit status 77.
trap '[ $? = 0 ] || exit 77' EXIT
set -eu
umask 022
verb=$1 dir=$2 disk=$3 notify=$4
tab=$(printf '\t')

if [ "$verb" = join ]; then
    while IFS=$tab read -r _ _ path; do
        echo 0 >"$path/cgroup.procs"
    done <"$dir/cgroups"
    exec unshare --cgroup /bin/sh "$0" build "$dir" "$disk" "$notify"
fi

mount --make-rprivate /
new=$dir/root
mount -t tmpfs -o mode=755 tmpfs "$new"
cd "$new"
mkdir dev etc home mnt old proc root run srv sys tmp var

# The programs. Folders that are links into /usr stay links.
for d in usr bin sbin lib lib32 lib64 libx32 opt nix; do
    if [ -L "/$d" ]; then
        cp -P "/$d" "$d"
    elif [ -d "/$d" ]; then
        mkdir "$d"
        mount --rbind "/$d" "$d"
    fi
done
while read -r _ _ _ _ at _; do
    case $at in "$new"/*) mount -o remount,bind,ro "$at" ;; esac
done </proc/self/mountinfo

# The configuration, without what would mount the outer machine's disks or start its services.
cp -a /etc/. etc
rm -rf etc/systemd etc/fstab etc/crypttab etc/shadow- etc/gshadow etc/gshadow- etc/subuid- etc/subgid-
mkdir etc/systemd

# The disk: what is still there after a crash.
for d in var home root etc/systemd; do
    mount --bind "$disk/$d" "$d"
done

mount -t proc -o nosuid,nodev,noexec proc proc
mount --bind proc/sys proc/sys # systemd raises limits of the kernel as it starts; the first unit opens it again
mount -o remount,bind,ro proc/sys
mount -t sysfs -o nosuid,nodev,noexec sysfs sys
mount -o remount,bind,ro,nosuid,nodev,noexec sys
mount -t tmpfs -o mode=755,nosuid,nodev tmpfs run
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs tmp

mount -t tmpfs -o mode=755,nosuid tmpfs dev
mkdir dev/pts dev/shm dev/mqueue
mknod -m 666 dev/null c 1 3
mknod -m 666 dev/zero c 1 5
mknod -m 666 dev/full c 1 7
mknod -m 666 dev/random c 1 8
mknod -m 666 dev/urandom c 1 9
mknod -m 666 dev/tty c 5 0
ln -s pts/ptmx dev/ptmx
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr
mount -t devpts -o nosuid,noexec,mode=620,ptmxmode=666,gid=5 devpts dev/pts
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs dev/shm
mount -t mqueue -o nosuid,nodev,noexec mqueue dev/mqueue

# The cgroups, each rooted where this process is. One file system for all is cgroup v2 alone.
if grep -q "^unified$tab" "$dir/cgroups"; then
    mount -t tmpfs -o mode=755,nosuid,nodev,noexec tmpfs sys/fs/cgroup
    while IFS=$tab read -r name options _; do
        mkdir "sys/fs/cgroup/$name"
        if [ "$name" = unified ]; then
            mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 sys/fs/cgroup/unified
        else
            mount -t cgroup -o "nosuid,nodev,noexec,$options" cgroup "sys/fs/cgroup/$name"
        fi
        for c in $(echo "$name" | tr , ' '); do
            [ -e "sys/fs/cgroup/$c" ] || ln -s "$name" "sys/fs/cgroup/$c"
        done
    done <"$dir/cgroups"
else
    mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 sys/fs/cgroup
fi

cp -a --remove-destination "$dir/seed/." .
for manager in system user; do # where the message bus is dbus-broker, links say so
    link=/etc/systemd/$manager/dbus.service
    [ ! -L "$link" ] || cp -P "$link" "run/systemd/$manager/"
done

systemd=/usr/lib/systemd/systemd
[ -x "$systemd" ] || systemd=/lib/systemd/systemd
drop=$(cat "$dir/drop")
pivot_root . old
while IFS=$tab read -r mode host inside; do # only now, where a link in a path leads to this host's files
    if [ -d "/old$host" ]; then
        mkdir -p "$inside"
    elif [ ! -e "$inside" ]; then
        mkdir -p "${inside%/*}/"
        : >"$inside"
    fi
    mount --rbind "/old$host" "$inside"
    [ "$mode" = rw ] || mount -o remount,bind,ro "$inside"
done <"/old$dir/binds"
umount -l /old
rmdir /old
mount --make-rshared /
exec setpriv --bounding-set "$drop" env -i container=throwaway NOTIFY_SOCKET="$notify" LANG=C.UTF-8 \
    PATH="$PATH" \
    "$systemd" --system --log-target=journal --show-status=0
