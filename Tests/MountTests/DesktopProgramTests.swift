import Foundation
import Testing

extension MountSuites {
    /// Programs of the desktop that know nothing of PromiseFS: their toolkits ask the portal, and
    /// a person picks by the page.
    @Suite(.enabled(if: Machine.hasDesktop, "no xdg-desktop-portal, zenity or Xvfb"))
    struct DesktopProgramTests {
        /// `ask WHAT PROGRAM…` runs a program while a person does WHAT on the page that it shows.
        private func programs(_ script: String, then: String) async throws {
            let options = MountedDomain.Options(
                prepare: #"mkdir "$C/docs"; echo one > "$C/a.txt"; echo two > "$C/b.txt""#)
            try await MountedDomain.with(options) { domain in
                try await domain.shell(
                    """
                    mkdir $T/bin; cat > $T/bin/xdg-open << 'END'
                    #!/bin/bash
                    address=$(grep -o 'http://[^"]*' "${1#file://}")
                    (sleep 0.2
                    exec python3 $W/pick_by_page.py "$address" $(cat $T/what) \\
                        < /dev/null > $T/page 2>&1) &
                    END
                    chmod +x $T/bin/xdg-open; export PATH=$T/bin:$PATH PROMISEFS_EXECUTABLE=$P T M W
                    export XDG_DATA_HOME=$T/data XDG_CURRENT_DESKTOP=promisefs
                    export XDG_DESKTOP_PORTAL_DIR=$R/packaging/desktop
                    cat > $T/session.sh << 'END'
                    trap 'kill $(jobs -p) 2> /dev/null || true' EXIT
                    "$(dirname "$P")/promisefs-portal" &
                    gdbus wait --session --timeout 20 org.freedesktop.impl.portal.desktop.promisefs
                    /usr/libexec/xdg-permission-store & /usr/libexec/xdg-desktop-portal &
                    gdbus wait --session --timeout 20 org.freedesktop.portal.Desktop
                    Xvfb -displayfd 3 -screen 0 800x600x24 -nolisten tcp 3> $T/display &
                    for n in $(seq 400); do [ ! -s $T/display ] || break; sleep 0.05; done
                    export DISPLAY=:$(cat $T/display) NO_AT_BRIDGE=1
                    ask() { echo "$1" > $T/what; shift
                    timeout 50 "$@" < /dev/null || echo "status $?"; }
                    cd $M
                    \(script)
                    END
                    here() { find $M -not -path '*/.promisefs*' | sort
                    "$P" grants list --domain \(domain.domainName) --json
                        "$P" reference list $M; }
                    before=$(here); lines=$("$P" grants audit --domain \(domain.domainName) | wc -l)
                    dbus-run-session -- bash -e $T/session.sh 2> $T/said || { cat $T/said >&2
                    false; }
                    umount -l $XDG_RUNTIME_DIR/doc 2> /dev/null || true
                    head $T/out.* $T/page >&2
                    \(then)
                    # A program of no sandbox has the document itself: nobody was given a right,
                    # nothing was made or fetched.
                    [ "$(here)" = "$before" ]
                    [ "$("$P" grants audit --domain \(domain.domainName) | wc -l)" = $lines ]
                    [ "$(getfattr --only-values -n user.promisefs.state $M/a.txt)" = placeholder ]
                    """, seconds: 200)
            }
        }

        @Test(.timeLimit(.minutes(4))) func zenityOpensAndSavesByThePage() async throws {
            try await programs(
                """
                export GTK_USE_PORTAL=1
                ask a.txt zenity --file-selection --title Pick > $T/out.open
                ask '--here docs' zenity --file-selection --save --filename=new.txt > $T/out.save
                ask '--here docs' zenity --file-selection --directory > $T/out.folder
                ask --cancel zenity --file-selection > $T/out.cancel
                """,
                then: """
                    [ "$(cat $T/out.open)" = $M/a.txt ]; [ "$(cat $T/out.save)" = $M/docs/new.txt ]
                    [ ! -e $M/docs/new.txt ]
                    [ "$(cat $T/out.folder)" = $M/docs ]; [ "$(cat $T/out.cancel)" = 'status 1' ]
                    """)
        }

        @Test(.timeLimit(.minutes(4)), .enabled(if: Machine.hasGTK4, "no GTK 4 for Python"))
        func aProgramOfGTK4OpensAndSavesByThePage() async throws {
            try await programs(
                """
                export GDK_DEBUG=portals
                ask a.txt /usr/bin/python3 $W/gtk4_dialog.py OPEN > $T/out.open
                ask '--here docs' /usr/bin/python3 $W/gtk4_dialog.py SAVE > $T/out.save
                ask --cancel /usr/bin/python3 $W/gtk4_dialog.py OPEN > $T/out.cancel
                """,
                then: """
                    [ "$(cat $T/out.open)" = $M/a.txt ]; [ "$(cat $T/out.save)" = $M/docs/new.txt ]
                    [ ! -e $M/docs/new.txt ]
                    [ "$(cat $T/out.cancel)" = cancelled ]
                    """)
        }
    }
}

extension Machine {
    private static func there(_ paths: String...) -> Bool {
        paths.allSatisfy { FileManager.default.fileExists(atPath: $0) }
    }

    fileprivate static let hasDesktop = there(
        "/usr/libexec/xdg-desktop-portal", "/usr/bin/zenity", "/usr/bin/Xvfb",
        "/usr/bin/dbus-run-session")
    fileprivate static let hasGTK4 =
        there("/usr/lib/python3/dist-packages/gi/__init__.py")
        && ["x86_64", "aarch64"].contains {
            there("/usr/lib/\($0)-linux-gnu/girepository-1.0/Gtk-4.0.typelib")
        }
}
