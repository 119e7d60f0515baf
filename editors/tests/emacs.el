;;; emacs.el --- Tests tk-mode in Emacs 28 and newer  -*- lexical-binding: t; -*-

;;; Commentary:

;; Run as
;;     TK=.. emacs --batch -Q -l editors/tests/emacs.el
;; Prints a line for each test and `emacs: N passed, M failed'; the exit code is 1 if one failed.  The tests of the server
;; need eglot, which Emacs 29 has and Debian has for 28 as elpa-eglot; outside of CI they are left out without it.

;;; Code:

(require 'cl-lib)
(require 'package)
(require 'xref)

(setq make-backup-files nil auto-save-default nil create-lockfiles nil)

(defconst here (file-name-directory (or load-file-name buffer-file-name)))
(defconst root (expand-file-name "../../" here))
(defconst mode-file (expand-file-name "editors/emacs/tk-mode.el" root))
(defconst tk (expand-file-name (or (getenv "TK") "target/debug/tk") root))
(defconst folder (file-name-as-directory (make-temp-file "tk-emacs" t)))
(defconst wait-seconds 30)

(defvar passed 0)
(defvar failed 0)

(defun tell (format &rest arguments)
  "Write a line of FORMAT with ARGUMENTS to standard output."
  (princ (concat (apply #'format format arguments) "\n")))

(defmacro test (name &rest body)
  "Run BODY as the test NAME."
  (declare (indent 1))
  `(condition-case problem
       (let ((inhibit-message t))
         ,@body
         (cl-incf passed)
         (tell "ok %s" ,name))
     (error (cl-incf failed)
            (tell "not ok %s\n  %s" ,name (error-message-string problem)))))

(defun equals (found expected)
  "Fail unless FOUND is EXPECTED."
  (unless (equal found expected)
    (error "Found %S, expected %S" found expected)))

(defun has (text part)
  "Fail unless TEXT has PART."
  (unless (string-match-p (regexp-quote part) (or text ""))
    (error "No %S in %S" part text)))

(defun wait (what check)
  "Wait for WHAT: until CHECK returns non-nil, which is returned."
  (let ((end (+ (float-time) wait-seconds)) found)
    (while (not (setq found (funcall check)))
      (when (> (float-time) end)
        (error "No %s in %d s" what wait-seconds))
      (accept-process-output nil 0.05))
    found))

(defun go (text &optional inside)
  "Move to the first TEXT, or to the start of INSIDE in it."
  (goto-char (point-min))
  (search-forward text)
  (goto-char (match-beginning 0))
  (when inside
    (search-forward inside)
    (goto-char (match-beginning 0))))

(defun copy (name)
  "Copy the file NAME of the repository to a folder of its own, and visit it."
  (let* ((to (expand-file-name (file-name-nondirectory name) folder))
         (before (find-buffer-visiting to)))
    (when before
      (with-current-buffer before
        (set-buffer-modified-p nil)
        (kill-buffer)))
    (copy-file (expand-file-name name root) to t)
    (find-file-noselect to)))

(defun in-mode (text)
  "A buffer with TEXT in `tk-mode'."
  (let ((buffer (generate-new-buffer "text")))
    (with-current-buffer buffer
      (insert text)
      (tk-mode)
      (font-lock-ensure))
    buffer))

(defun indented (text)
  "The TEXT, indented."
  (with-current-buffer (in-mode text)
    (indent-region (point-min) (point-max))
    (prog1 (buffer-string) (kill-buffer))))

;;;; The mode

(load mode-file nil t)

(test "the mode compiles without warnings"
  (let* ((to (expand-file-name "tk-mode.elc" folder))
         (byte-compile-dest-file-function (lambda (_) to))
         (byte-compile-error-on-warn t))
    (unless (eq (byte-compile-file mode-file) t)
      (error "%s" (with-current-buffer "*Compile-Log*" (buffer-string))))))

(test "its documentation satisfies checkdoc"
  (require 'checkdoc)
  (with-current-buffer (find-file-noselect mode-file)
    (let ((checkdoc-diagnostic-buffer "*checkdoc*"))
      (checkdoc-current-buffer t)
      (with-current-buffer "*checkdoc*"
        (equals (string-match-p "^tk-mode\\.el:" (buffer-string)) nil)))
    (kill-buffer)))

(test "a .tk file has its mode and options"
  (with-current-buffer (copy "editors/tests/workspace/main.tk")
    (equals major-mode 'tk-mode)
    (equals comment-start "// ")
    (equals indent-tabs-mode nil)
    (kill-buffer)))

(test "words have their colors"
  (with-current-buffer (in-mode (with-temp-buffer
                                  (insert-file-contents (expand-file-name "grammar/sample.tk" here))
                                  (buffer-string)))
    (pcase-dolist (`(,text ,inside ,face)
                   '(("//// A line" nil font-lock-comment-delimiter-face)
                     ("//// A line" "let x" font-lock-comment-face)
                     ("/// A kernel" "fn if" font-lock-doc-face)
                     ("// keyword" nil font-lock-comment-delimiter-face)
                     ("// keyword" "1e-3" font-lock-comment-face)
                     ("use std" nil font-lock-keyword-face)
                     ("use std" "std" font-lock-constant-face)
                     ("@fast" nil font-lock-preprocessor-face)
                     ("kernel sample" nil font-lock-keyword-face)
                     ("kernel sample" "sample" font-lock-function-name-face)
                     ("T: f16" nil font-lock-constant-face)
                     ("T: f16" "f16" font-lock-type-face)
                     ("x: view" "x" nil)
                     ("x: view" "view" font-lock-type-face)
                     ("mut u32" nil font-lock-keyword-face)
                     ("f8e4m3)" nil font-lock-type-face)
                     ("grid(cdiv" nil font-lock-keyword-face)
                     ("grid(cdiv" "cdiv" nil)
                     ("BM % 16" nil font-lock-constant-face)
                     ("scratch(count" nil font-lock-keyword-face)
                     ("let (i" nil font-lock-keyword-face)
                     ("for k" "in " font-lock-keyword-face)
                     ("-inf" "inf" font-lock-constant-face)
                     ("as T.acc" nil font-lock-keyword-face)
                     ("T.acc" "acc" nil)
                     ("true ||" nil font-lock-constant-face)
                     ("grid::grouped" nil font-lock-constant-face)
                     ("None" nil font-lock-constant-face)
                     ("export sample" nil font-lock-keyword-face)
                     ("struct Pair" "Pair" font-lock-type-face)
                     ("/// The first" nil font-lock-doc-face)
                     ("fn swap" "swap" font-lock-function-name-face)
                     ("test \"a" nil font-lock-keyword-face)
                     ("test \"a" "quoted" font-lock-string-face)
                     ("assert_error" nil font-lock-keyword-face)
                     ("let test" "test" font-lock-variable-name-face)
                     ("launch(grid = 1" nil nil)
                     ("launch(grid = 1" "grid" nil)
                     ("\"open" nil font-lock-string-face)
                     ;; A string ends with its line.
                     ("let after" nil font-lock-keyword-face)))
      (go text inside)
      (let ((found (get-text-property (point) 'face)))
        (unless (eq found face)
          (error "%s in %s: found %s, expected %s" inside text found face))))
    (kill-buffer)))

(test "colors need no spaces around operators, and members have none"
  (with-current-buffer (in-mode "fn f[T:f16|bf16|f32](x:T,y:tile[T,f64])->T{x.f16+T.max+A.B+X-inf-nan}")
    (dolist (word '("f16|" "bf16" "f32" "tile" "f64"))
      (go word)
      (equals (get-text-property (point) 'face) 'font-lock-type-face))
    (dolist (word '("T,y" "T{" "T.max" "A.B" "X-" "inf" "nan"))
      (go word)
      (equals (get-text-property (point) 'face) 'font-lock-constant-face))
    (dolist (word '(("x.f16" "f16") ("A.B" "B") ("T.max" "max")))
      (apply #'go word)
      (equals (get-text-property (point) 'face) nil))
    (kill-buffer)))

(test "indentation agrees with the formatter"
  (let ((lines 0) (other nil))
    (dolist (path (append (directory-files-recursively (expand-file-name "examples" root) "\\.tk\\'")
                          (directory-files-recursively (expand-file-name "stdlib" root) "\\.tk\\'")))
      (with-temp-buffer
        (insert-file-contents path)
        (tk-mode)
        (let ((expected (buffer-string)))
          (while (re-search-forward "^ +" nil t)
            (replace-match ""))
          (when (equal (buffer-string) expected)
            (error "Nothing to indent"))
          (indent-region (point-min) (point-max))
          (cl-mapc (lambda (found wanted)
                     (cl-incf lines)
                     (unless (equal found wanted)
                       (push (format "%s: %s" path wanted) other)))
                   (split-string (buffer-string) "\n") (split-string expected "\n")))))
    (equals other nil)
    (unless (> lines 5000)
      (error "Only %d lines" lines))))

(test "indentation of what the formatter breaks in other ways"
  (dolist (text '("fn f() -> bool {\n    let q = a\n            // why\n            && b // trailing\n        // and\n        || c;\n}\n"
                  "fn f() {\n    y[row] = -(\n        aaa * bbb\n        + ccc\n    );\n    x\n        .load(1)\n        .store(2);\n}\n"
                  "fn f() {\n    if a\n        && b\n    {\n        1\n    } else {\n        2\n    }\n}\n"
                  "kernel k(x: i32)\n    // The grid.\n    grid(1)\n    tune(\n        key = x,\n    ) {\n        { A = 1 }\n            if target.has_tma,\n    }\n    // The end.\n{\n    return;\n}\n"
                  "fn f() {\n    let s = \"// {\"; // {\n    let t = \"open {\n        ;\n    let u = 1;\n}\n"))
    (equals (substring-no-properties (indented (replace-regexp-in-string "^ +" "" text))) text)))

(test "indentation of a text that is being written"
  (with-current-buffer (in-mode "@fast kernel k(x: i32)")
    (setq-local electric-indent-mode t)
    (goto-char (point-max))
    (dolist (line '("grid(1)" "{" "let a = f(" "1," ");" "if a {" "b;" "}"))
      (newline-and-indent)
      (insert line)
      (indent-according-to-mode))
    (equals (buffer-string)
            "@fast kernel k(x: i32)\n    grid(1)\n{\n    let a = f(\n        1,\n    );\n    if a {\n        b;\n    }")
    (kill-buffer))
  (dolist (text '("}" ")" "{{{((" "fn f( {\n" "\"" "+ + +\n&& a\n" "// a" "tune(\n{\n}\nif" ""))
    (indented text)))

(test "comments are written and taken away"
  (with-current-buffer (in-mode "fn f() {\n    a;\n    b;\n}\n")
    (let ((before (buffer-string)))
      (comment-region (point-min) (point-max))
      (go "a;")
      (has (thing-at-point 'line) "//     a;")
      (uncomment-region (point-min) (point-max))
      (equals (buffer-string) before))
    (kill-buffer)))

(test "imenu has the items of a file"
  (with-current-buffer (copy "editors/tests/workspace/main.tk")
    (let ((index (funcall imenu-create-index-function)))
      (dolist (group '(("Kernel" "double")
                       ("Function" "order")
                       ("Test" "double: every element" "order starts at the first tile")))
        (equals (mapcar #'car (cdr (assoc (car group) index))) (cdr group))))
    (kill-buffer))
  (with-current-buffer (copy "editors/tests/workspace/helpers.tk")
    (has (format "%S" (funcall imenu-create-index-function)) "(\"Struct\" (\"Range\"")
    (kill-buffer)))

(test "movement by items"
  (with-current-buffer (copy "editors/tests/workspace/main.tk")
    (go "let values")
    (beginning-of-defun)
    (equals (looking-at "@fast kernel double") t)
    (end-of-defun)
    (equals (looking-back "twice(values));\n}\n" (- (point) 60)) t)
    (go "whole)")
    (beginning-of-defun 2)
    (equals (looking-at "@fast kernel double") t)
    (beginning-of-defun -1)
    (equals (looking-at "fn order") t)
    (kill-buffer)))

(test "the setup of the page works as written"
  (let ((setup (with-temp-buffer
                 (insert-file-contents (expand-file-name "docs/editors/emacs.md" root))
                 (re-search-forward "```elisp\n\\(\\(?:.*\n\\)*?\\)```")
                 (replace-regexp-in-string "/path/to" (directory-file-name root) (match-string 1) t t)))
        (init (expand-file-name "init.el" folder)))
    (with-temp-file init
      (insert setup "(defun eglot-ensure () (princ (format \"%s in %s\" 'eglot major-mode)))"))
    (with-temp-buffer
      (call-process (expand-file-name invocation-name invocation-directory) nil '(t nil) nil
                    "--batch" "-Q" "-l" init "--visit" (expand-file-name "examples/add.tk" root))
      (equals (buffer-string) "eglot in tk-mode"))))

;;;; The server

(setq eglot-sync-connect wait-seconds eglot-autoshutdown t)

(defun start ()
  "Start the server for this buffer, and return it."
  (call-interactively #'eglot)
  (wait "server" #'eglot-current-server))

(defun hover (text &optional inside)
  "What the server says about TEXT, or INSIDE in it."
  (go text inside)
  (let (shown)
    (eglot-hover-eldoc-function (lambda (found &rest _) (setq shown (or found ""))))
    (substring-no-properties (wait "hover" (lambda () shown)))))

(defun definition (text &optional inside)
  "The file and line where TEXT is defined, or INSIDE in it."
  (go text inside)
  (let* ((found (xref-backend-definitions 'eglot (xref-backend-identifier-at-point 'eglot)))
         (marker (xref-location-marker (xref-item-location (car found)))))
    (with-current-buffer (marker-buffer marker)
      (goto-char marker)
      (format "%s: %s" (file-name-nondirectory buffer-file-name) (string-trim (thing-at-point 'line))))))

(defun completions (text)
  "The words that may be in the place of TEXT, which starts a name."
  (go text)
  (goto-char (match-end 0))
  (let ((found (eglot-completion-at-point)))
    (mapcar #'string-trim (all-completions "" (nth 2 found)))))

(defun messages ()
  "The diagnostics of this buffer, if there are any."
  ;; Otherwise done after a command.
  (flymake-start)
  (mapcar #'flymake-diagnostic-text (flymake-diagnostics)))

(defun server-tests ()
  "The tests that need the server."
  (setq tk-command tk)
  (with-current-buffer (find-file-noselect (expand-file-name "examples/softmax.tk" root))
    ;; Hover is for a buffer that is shown.
    (switch-to-buffer (current-buffer))
    (test "eglot starts the server"
      (start))
    (test "hover shows a type with its shape, and documentation"
      (has (hover "let v = x" "v") "v: tile[")
      (has (hover "softmax(x, y)") "y[i, :] = exp(x[i, :]) / sum(exp(x[i, :]))"))
    (test "definition goes to a line of the file, and into the library"
      (equals (definition "exp(v - max(v" "v ") "softmax.tk: let v = x[row].load([0], [BLOCK], other = -inf) as T.acc;")
      (has (definition "assert_close(" nil) "assert_close")))
  (with-current-buffer (find-file-noselect (expand-file-name "helpers.tk" folder))
    (kill-buffer))
  (make-directory (expand-file-name ".git" folder) t)
  (with-current-buffer (progn (copy "editors/tests/workspace/helpers.tk") (copy "editors/tests/workspace/main.tk"))
    (test "eglot starts the server for another folder"
      (start)
      (equals (messages) nil))
    (test "completion knows members and names"
      (go "extent(whole)")
      (let ((found (completions "grid::grou")))
        (unless (member "grouped" found)
          (error "Found %S" found))))
    (test "references are found across files"
      (go "twice(values)")
      (let ((found (xref-backend-references 'eglot (xref-backend-identifier-at-point 'eglot))))
        (equals (length found) 4)))
    (test "a broken file gets a diagnostic, which goes when it is repaired"
      (go "BLOCK;\n    let values")
      (delete-char 5)
      (insert "BLOK")
      (save-buffer)
      (has (car (wait "diagnostic" #'messages)) "cannot find `BLOK`")
      (go "BLOK")
      (equals (flymake-diagnostic-beg (car (flymake-diagnostics))) (point))
      (delete-char 4)
      (insert "BLOCK")
      (save-buffer)
      (wait "text without diagnostics" (lambda () (null (messages)))))
    (test "formatting lays a file out"
      (let ((expected (buffer-string)))
        (go "let start = ")
        (replace-match "let   start=")
        (eglot-format-buffer)
        (equals (buffer-string) expected)))
    ;; Changes are sent after a while, and on saving.
    (save-buffer)
    (test "rename changes the text"
      (go "whole = Range")
      (eglot-rename "whole")
      (go "extent(whole)")
      (set-buffer-modified-p nil))
    (eglot-shutdown-all)))

;; -Q leaves out the folder in which Debian's packages are.
(add-to-list 'package-directory-list "/usr/share/emacs/site-lisp/elpa")
(package-initialize)
(if (require 'eglot nil t)
    (server-tests)
  (tell "emacs: eglot is missing; the server was not tested")
  (when (equal (getenv "CI") "true")
    (cl-incf failed)))

(tell "emacs: %d passed, %d failed" passed failed)
(delete-directory folder t)
(kill-emacs (if (= failed 0) 0 1))

;;; emacs.el ends here
